"""The numbers below the question: at most four, the last how many designs are on the front."""

from dse.grid.result import SweepResult
from dse.reports.sweep.page_head import MOST_NUMBERS, numbers


def test_the_last_number_counts_the_front(result: SweepResult, impossible: SweepResult) -> None:
    found = numbers(result)
    assert len(found) <= MOST_NUMBERS
    assert found[-1] == ("on the Pareto front", str(len(result.front)), f"of {result.n} designs")
    assert numbers(impossible) == []
