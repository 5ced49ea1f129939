"""Ranges and round ticks of axes, linear or logarithmic."""

from typing import Any

import numpy as np

LOG_RATIO = 3.0
"""A range that spans more than this factor is drawn on a logarithmic axis."""


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return at most ``most`` round values between two positive ones, evenly spread on a logarithmic axis."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 1.5, 2, 3, 4, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= most:
            return ticks
    return ticks[:: -(-len(ticks) // most)]


def axis_range(values: np.ndarray, ticks: int = 8) -> dict[str, Any]:
    """Axis settings for values: logarithmic with round ticks where they span much, with a margin of 4 %."""
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if low > 0 and high / low > LOG_RATIO:
        margin = 0.04 * np.log10(high / low)
        ends = [float(np.log10(low) - margin), float(np.log10(high) + margin)]
        places = log_ticks(10 ** ends[0], 10 ** ends[1], ticks)
        return {"type": "log", "range": ends, "tickvals": places, "ticktext": [f"{p:,.6g}" for p in places]}
    margin = max(0.04 * (high - low), 0.002 * abs(high)) or 1.0
    return {"range": [float(low - margin), float(high + margin)], "nticks": ticks}
