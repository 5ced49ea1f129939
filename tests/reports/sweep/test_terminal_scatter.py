"""The scatter in the terminal: it fits, marks the baseline, names its units, and is quiet elsewhere."""

import io

import numpy as np
import pytest
from rich.console import Console

from dse.grid.result import SweepResult
from dse.reports.sweep.terminal_scatter import BRAILLE, HEIGHT, Span, print_scatter, scatter_lines


def printed(result: SweepResult, width: int = 90, terminal: bool = True) -> str:
    """What is printed on a console of that width."""
    file = io.StringIO()
    print_scatter(result, Console(file=file, width=width, force_terminal=terminal, color_system=None))
    return file.getvalue()


@pytest.mark.parametrize("width", [50, 80, 140])
@pytest.mark.parametrize("name", ["pair", "result", "maximised"])
def test_fits_and_names_its_axes(name: str, width: int, request: pytest.FixtureRequest) -> None:
    one = request.getfixturevalue(name)
    lines = printed(one, width).splitlines()
    assert max(len(line) for line in lines) <= width
    assert lines[1] == "prefill time to first token [ms]"
    assert sum("◆" in line for line in lines) == 2  # in the plot and in the legend
    assert f"Pareto set ({len(one.front):,})" in lines[-1]


def test_designs_lie_where_they_should(result: SweepResult) -> None:
    x, y = result.space.objectives[2], result.space.objectives[0]
    lines = [line.plain for line in scatter_lines(result, x, y, 80)]
    plot = [line for line in lines if "│" in line or "┤" in line]
    assert len(plot) == HEIGHT
    dots = sum(bin(ord(c) - BRAILLE).count("1") for line in plot for c in line if BRAILLE < ord(c) < BRAILLE + 256)
    assert 0 < dots <= len(result.front)
    assert lines[-2].strip() == "die area [mm²]"
    smallest = result.front.sort_values([x.name, y.name]).iloc[0]
    values = np.append(result.front[y.name], result.baseline[y.name]).astype(float)
    row = int((1 - Span.of(values).place(np.asarray(float(smallest[y.name])))) * HEIGHT)
    inside = [line.replace("┤", "│").partition("│")[2] for line in plot]
    indents = [len(line) - len(line.lstrip()) if line.strip() else 999 for line in inside]
    assert indents[row] == min(indents)


def test_without_a_baseline(without_baseline: SweepResult) -> None:
    assert "◆" not in printed(without_baseline)


def test_quiet_where_it_cannot_be_seen(result: SweepResult, single: SweepResult, impossible: SweepResult) -> None:
    assert printed(result, terminal=False) == ""
    assert printed(result, width=40) == ""
    assert printed(single) == ""
    assert printed(impossible) == ""


def test_ticks_are_round_and_inside() -> None:
    linear = Span.of(np.array([3.0, 7.0]))
    assert not linear.log
    assert linear.ticks(5) == [3.0, 4.0, 5.0, 6.0, 7.0]
    wide = Span.of(np.array([1.0, 1000.0]))
    assert wide.log
    assert set(wide.ticks(5)) <= {10.0**k for k in range(4)} | {3 * 10.0**k for k in range(4)}
    assert 0 < wide.place(np.array([30.0]))[0] < 1
