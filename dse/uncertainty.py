"""How far off a calibrated prediction may be: a model's error on measurements that no fit has seen."""

import math
from dataclasses import dataclass

SHARE = 0.8
"""Share of the measurements left out of a fit that lie within its interval."""


@dataclass(frozen=True)
class Uncertainty:
    """Measured over predicted lies between ``low`` and ``high`` [1] in SHARE of what was left out of the fit.

    ``source`` says of what; ``gpus``: presets that were measured, fitted or left out; empty where it is not GPUs.
    """

    low: float
    high: float
    source: str
    gpus: tuple[str, ...] = ()

    def times(self, other: "Uncertainty") -> "Uncertainty":
        """Return the uncertainty of a product of two predictions whose errors are independent."""
        low = math.exp(-math.hypot(math.log(self.low), math.log(other.low)))
        high = math.exp(math.hypot(math.log(self.high), math.log(other.high)))
        return Uncertainty(low, high, f"{self.source}; {other.source}", (*self.gpus, *other.gpus))

    def of_inverse(self) -> "Uncertainty":
        """Return the uncertainty of one over the prediction."""
        return Uncertainty(1 / self.high, 1 / self.low, self.source, self.gpus)
