"""The drawing of stacks: a panel a workload, a bar a design, the baseline on top."""

import pandas as pd
import pytest

from dse.power.power import Power
from dse.reports.common.stacks import COMPONENT_COLOURS, POWER, TIME, stacks_figure


def frame(**workloads: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Return stacks by workload, design and cause [ms]."""
    rows = [
        {"workload": w, "name": name, "cause": cause, "ms": ms, "share": ms / sum(stack.values())}
        for w, designs in workloads.items()
        for name, stack in designs.items()
        for cause, ms in stack.items()
    ]
    return pd.DataFrame(rows)


TWO = {"baseline": {"selected": 3.0, "wait": 1.0}, "smallest <die>": {"selected": 2.0, "wait": 0.05}}


def test_every_part_is_drawn_with_its_size_and_colour() -> None:
    figure = stacks_figure(frame(prefill=TWO))
    bars = {trace.name: trace for trace in figure.data if trace.type == "bar"}
    assert list(bars["selected"].x) == [3.0, 2.0]
    assert list(bars["wait"].x) == [1.0, 0.05]
    assert bars["wait"].marker.color == TIME.colours["wait"]


def test_a_share_is_reported_where_it_has_room() -> None:
    figure = stacks_figure(frame(prefill=TWO))
    (wait,) = [trace for trace in figure.data if trace.name == "wait"]
    assert list(wait.text) == ["25 %", ""]


def test_the_baseline_stands_on_top_and_names_are_escaped() -> None:
    figure = stacks_figure(frame(prefill=TWO))
    order = figure.layout.yaxis.categoryarray
    assert order[-1] == "baseline"
    assert "<die>" not in order[0].replace("<br>", "") and "&lt;die&gt;" in order[0].replace("<br>", "")


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_two_workloads_share_a_row(count: int, rows: int) -> None:
    figure = stacks_figure(frame(**{f"w{i}": TWO for i in range(count)}))
    titles = [a.text for a in figure.layout.annotations if a.text.startswith("<b>w")]
    assert titles == [f"<b>w{i}</b>" for i in range(count)]
    one = stacks_figure(frame(w=TWO)).layout.height
    assert figure.layout.height - 26 == rows * (one - 26)


def test_every_component_of_power_has_a_colour_of_its_own() -> None:
    assert set(Power.__dataclass_fields__) <= COMPONENT_COLOURS.keys()
    assert len(set(COMPONENT_COLOURS.values())) == len(COMPONENT_COLOURS)
    assert POWER.light <= COMPONENT_COLOURS.keys()
