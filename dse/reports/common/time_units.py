"""Units of printed and drawn times: microseconds for kernels, milliseconds or seconds for whole networks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dse.reports.common.words import number


@dataclass(frozen=True)
class TimeUnit:
    """A unit of time."""

    name: str
    us: float  # length of the unit [us]
    least: float  # time from which on it is used [us]

    def text(self, us: float) -> str:
        """Return a time given in microseconds in this unit, with its name."""
        return f"{number(us / self.us)} {self.name}"


UNITS = (TimeUnit("us", 1.0, 0.0), TimeUnit("ms", 1e3, 1e4), TimeUnit("s", 1e6, 1e6))


def fitting_unit(us: ArrayLike) -> TimeUnit:
    """Return the unit that fits times given in microseconds, by their median."""
    middle = float(np.median(np.asarray(us, float)))
    return next(unit for unit in reversed(UNITS) if middle >= unit.least)


def row_unit(measured_us: float, predicted_us: float) -> TimeUnit:
    """Return the unit of all times of a row: that of the longer one."""
    return fitting_unit(max(measured_us, predicted_us))
