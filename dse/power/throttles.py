"""Whether a board throttles, in a word: its clock at both ends of what is known of its watts."""

import numpy as np
from numpy.typing import ArrayLike

from dse.base.constants import constant

THROTTLED = constant("throttled_clock_share")
"""Share of the requested clock below which it is said that a board throttles [1]."""

YES, NO, OPEN = "yes", "no", "open"
"""The words: a board throttles at both ends of its watts, at none, or at one of them."""


def throttles(low: ArrayLike, high: ArrayLike) -> np.ndarray:
    """Return YES, NO or OPEN of boards, an array of one shape with the shares of the clock [1] that the power limit
    leaves where they draw the ``low`` and the ``high`` end of their watts."""
    held = np.asarray(low) < THROTTLED, np.asarray(high) < THROTTLED
    return np.where(held[0], YES, np.where(held[1], OPEN, NO))
