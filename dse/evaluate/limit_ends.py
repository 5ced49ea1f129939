"""What the error of the watts leaves open at the power limit: times and clocks where a board draws less, and more.

Clock and power at a limit are a fixed point. It is solved again at both ends of the watts' interval, so that the
interval of a time holds a board that throttles and one that does not, where both may be.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.base.error_interval import ErrorInterval
from dse.evaluate import steps
from dse.evaluate.evaluation import Evaluation, WorkloadResult
from dse.power.board import BoardPower
from dse.power.models import PowerChoice
from dse.power.throttles import throttles

CLOCK = "clock_share"


@dataclass(frozen=True)
class LimitEnds:
    """Metrics of a workload by name, arrays (designs,), as ``predicted`` and at the ``low`` and the ``high`` end of the
    watts' interval."""

    predicted: Mapping[str, np.ndarray]
    low: Mapping[str, np.ndarray]
    high: Mapping[str, np.ndarray]
    source: str  # of the watts' interval

    @property
    def throttles(self) -> np.ndarray:
        """Whether each board throttles, in a word (:func:`dse.power.throttles.throttles`)."""
        return throttles(self.low[CLOCK], self.high[CLOCK])

    def factors(self, metric: str) -> tuple[float, float]:
        """Return the ends of a metric of the first design over what is predicted [1], the lower one first; 1 and 1 of a
        metric that it does not have."""
        if metric not in self.predicted:
            return 1.0, 1.0
        ends = [float(end[metric][0] / self.predicted[metric][0]) for end in (self.low, self.high)]
        return min(*ends, 1.0), max(*ends, 1.0)

    @property
    def clocks(self) -> tuple[float, float]:
        """The least and the largest share of the clock that is left to the first design [1]."""
        low, high = sorted(float(end[CLOCK][0]) for end in (self.low, self.high))
        return low, high

    @property
    def of_clock(self) -> ErrorInterval:
        """The error interval of the first design's share of the clock."""
        return ErrorInterval(*self.factors(CLOCK), self.source)


def limit_ends(evaluation: Evaluation, result: WorkloadResult, power: PowerChoice) -> LimitEnds | None:
    """Return the ends of a result's metrics; None where no limit holds, or nothing is known of the watts."""
    board = power.model
    if not power.limit or not isinstance(board, BoardPower):
        return None
    interval = board.error_interval
    low, high = (
        steps.phase_metrics(evaluation.workload, evaluation.settled_by(result, board.drawing(factor)))
        for factor in (interval.low, interval.high)
    )
    return LimitEnds(result.metrics, low, high, interval.source)
