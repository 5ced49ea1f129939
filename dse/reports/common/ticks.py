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


def tick_text(value: float) -> str:
    """Return a round value as a tick says it, in few characters: "1,500", "150k", "1.5M", "2e-5"."""
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:,.6g}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:,.6g}{letter}"
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):.3g}e{int(exponent)}"


def log_axis(low: float, high: float, most: int = 8) -> dict[str, Any]:
    """Axis settings from ``low`` to ``high``, logarithmic with at most ``most`` round ticks."""
    places = log_ticks(low, high, most)
    texts = [tick_text(place) for place in places]
    return {
        "type": "log",
        "range": [float(np.log10(end)) for end in (low, high)],
        "tickvals": places,
        "ticktext": texts,
    }


def axis_range(values: np.ndarray, ticks: int = 8) -> dict[str, Any]:
    """Axis settings for values: logarithmic with round ticks where they span much, with a margin of 4 %."""
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if low > 0 and high / low > LOG_RATIO:
        margin = (high / low) ** 0.04
        return log_axis(float(low / margin), float(high * margin), ticks)
    margin = max(0.04 * (high - low), 0.002 * abs(high)) or 1.0
    thousands = {"tickformat": ",~r"} if high >= 1000 else {}
    return {"range": [float(low - margin), float(high + margin)], "nticks": ticks} | thousands
