"""The first screen of a page: at most four numbers, the last the front's designs, and what should be linked."""

from dataclasses import replace

from dse.grid.result import SweepResult
from dse.hardware.tensor_area import TENSOR_AXES
from dse.reports.sweep.page_head import MOST_NUMBERS, numbers, page_head


def test_the_last_number_counts_the_front(result: SweepResult, impossible: SweepResult) -> None:
    found = numbers(result)
    assert len(found) <= MOST_NUMBERS
    assert found[-1] == ("on the Pareto front", str(len(result.front)), f"of {result.n} designs")
    assert numbers(impossible) == []


def test_what_should_be_linked_stands_before_the_notes(result: SweepResult) -> None:
    linked = tuple((name, result.space.links[0][1]) for name in TENSOR_AXES[1:])
    together, alone = (page_head(replace(result, space=replace(result.space, links=links)), None, None, None)
                       for links in (linked, ()))  # fmt: skip
    assert "Careful: tensor_fma" not in together
    assert "types share multipliers" not in together
    assert "Careful: tensor_fma" in alone[: alone.index("<details")]
    assert "types share multipliers" in alone[alone.index("<details") :]
