"""How far off a calibrated prediction may be: a model's error on measurements that no fit has seen."""

import math
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np

SHARE = 0.8
"""Share of the measurements left out of a fit that lie within its interval."""

DEVIATIONS = NormalDist().inv_cdf((1 + SHARE) / 2)
"""Standard deviations of a normal distribution from its middle to the ends of the interval that holds SHARE."""


@dataclass(frozen=True)
class ErrorInterval:
    """Measured over predicted lies between ``low`` and ``high`` [1] in SHARE of what was left out of the fit.

    ``source`` says of what; ``gpus``: those that were measured, fitted or left out; empty where it is not GPUs.
    ``anywhere``: whether it is said of other GPUs, too. ``own``: the sheets of those of a user's own.
    """

    low: float
    high: float
    source: str
    gpus: tuple[str, ...] = ()
    anywhere: bool = False
    own: tuple[Any, ...] = field(default=(), compare=False)  # told by their names; sheets cannot be hashed

    def times(self, other: "ErrorInterval") -> "ErrorInterval":
        """Return the error interval of a product of two predictions whose errors are independent."""
        ends = [(math.log(one.low), math.log(one.high)) for one in (self, other)]
        middle = sum(low + high for low, high in ends) / 2
        half = math.hypot(*((high - low) / 2 for low, high in ends))
        gpus, anywhere = (*self.gpus, *other.gpus), self.anywhere and other.anywhere
        source = f"{self.source}; {other.source}"
        own = (*self.own, *other.own)
        return ErrorInterval(math.exp(middle - half), math.exp(middle + half), source, gpus, anywhere, own)

    def with_factor(self, least: float, most: float) -> "ErrorInterval":
        """Return the error interval of a prediction times a factor between ``least`` and ``most`` [1], about 1, whose
        error is independent (:func:`ends_with_factor`)."""
        logs = np.log([self.low, self.high, least, most])
        low, high = np.exp(ends_with_factor(*logs)).tolist()
        return replace(self, low=low, high=high)

    def of_inverse(self) -> "ErrorInterval":
        """Return the error interval of one over the prediction."""
        return replace(self, low=1 / self.high, high=1 / self.low)


def ends_with_factor(low: Any, high: Any, least: Any, most: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the interval of a sum of two errors: one between ``low`` and ``high``, another about zero,
    between ``least`` and ``most``; logs, numbers or arrays of one shape.

    Distances from the middle of the first add up as squares. Both ends of the second lie within, too: it may be one
    thing or the other, as a board that throttles or does not.
    """
    middle, least, most = (low + high) / 2, np.minimum(least, 0.0), np.maximum(most, 0.0)
    half = high - middle
    below = np.minimum(middle - np.hypot(half, least), least + np.maximum(low, 0.0))
    return below, np.maximum(middle + np.hypot(half, most), most + np.minimum(high, 0.0))
