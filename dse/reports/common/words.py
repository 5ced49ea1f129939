"""Numbers, units and names as words of pages and terminals."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dse.base.units import signed
from dse.hardware.peak import PEAK_METRICS
from dse.power.board import BoardPower, left_out_errors
from dse.power.models import PowerChoice
from dse.space.axis import Axis
from dse.space.metrics import USD, design_metrics, named_metric
from dse.space.space import Objective, Space
from dse.timing.timing import TimingModel

MISSING = "–"

REGIMES = {
    "all": "all",
    "under_10us": "< 10 us",
    "10_to_50us": "10-50 us",
    "memory_above_50us": "memory >50us",
    "compute_above_50us": "compute >50us",
}
"""Regime of a measured time -> its name in a table."""

METRIC_LABELS = {
    "ttft_ms": "time to first token",
    "tbt_ms": "time between tokens",
    "time_ms": "time",
    "tokens_per_s": "tokens a second",
    "energy_j": "energy",
    "power_w": "board power",
    "clock_share": "clock left by the power limit",
    "tokens_per_joule": "tokens for each joule",
    "joules_per_token": "joules for each token",
    "dram_gb": "DRAM traffic",
    "memory_gb": "DRAM needed",
    "die_mm2": "die area",
    "die_usd": "cost of the dies",
    "memory_usd": "price of the memory",
    USD: "dollars for a million tokens",
    **{name: f"{kind.title} peak" for name, kind in PEAK_METRICS.items()},
}
"""Metric -> its name in a sentence."""

RUN_LABELS = METRIC_LABELS | {
    "time_ms": "total time",
    "tokens_per_s": "tokens a second, all requests",
    "energy_j": "energy of all boards",
    "power_w": "mean power of a board",
    "memory_gb": "DRAM needed per GPU",
}
"""Metric of one run -> its name in a list, which says of what it is."""


def number(value: Any) -> str:
    """Return a value with three significant digits, whole numbers in full with thousands separated."""
    value = float(value)
    if not math.isfinite(value):
        return MISSING
    if value == 0 or 100 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 1e-3 <= abs(value) < 100:
        return f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"
    return f"{value:.3g}"


def axis_value(value: Any) -> str:
    """Return the value of an axis as a person would write it in a space file."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "true" if value else "false"
    return f"{value:.7g}"


def short_value(value: Any) -> str:
    """Return the value of an axis for a table: as :func:`axis_value`, but four digits of what is not whole."""
    if isinstance(value, str) or float(value).is_integer():
        return axis_value(value)
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def short_values(values: Sequence[Any]) -> list[str]:
    """Return values as :func:`short_value`; those that would then read alike in full."""
    full, short = [axis_value(value) for value in values], [short_value(value) for value in values]
    meant: dict[str, set[str]] = {}
    for text, brief in zip(full, short, strict=True):
        meant.setdefault(brief, set()).add(text)
    return [brief if len(meant[brief]) == 1 else text for text, brief in zip(full, short, strict=True)]


def unit_text(unit: str) -> str:
    """Return a unit as it is read; nothing for a pure number."""
    return "" if unit == "1" else unit.replace("mm2", "mm²")


def quantity(value: Any, unit: str) -> str:
    """Return a number with its unit."""
    return f"{number(value)} {unit_text(unit)}".rstrip()


def bracketed(name: str, unit: str) -> str:
    """Return a name followed by its unit in brackets."""
    return f"{name} [{unit_text(unit)}]" if unit_text(unit) else name


def label(objective: Objective) -> str:
    """Return an objective's name in a sentence: what the metric is, unless the user named it."""
    text = objective.expression.text
    workload, metric = named_metric(text)
    if objective.name != text or metric not in METRIC_LABELS or (not workload and text not in design_metrics()):
        return objective.name
    return f"{workload} {METRIC_LABELS[metric]}".strip()


def superlative(objective: Objective) -> str:
    """Return the short name of the design that is best in an objective: "fastest prefill", "smallest die"."""
    workload, metric = named_metric(objective.expression.text)
    if objective.name == objective.expression.text and objective.direction == "minimize":
        if metric in ("ttft_ms", "tbt_ms", "time_ms"):
            return f"fastest {workload}"
        if metric == "die_mm2":
            return "smallest die"
    return f"{'lowest' if objective.sign > 0 else 'highest'} {label(objective)}"


def change(value: float, base: float) -> str:
    """Return how far a value lies from the baseline's, as "22 % less"; nothing where no percentage exists."""
    if not (math.isfinite(value) and math.isfinite(base) and base > 0):
        return ""
    percent = 100 * (value / base - 1)
    if abs(percent) < 0.05:
        return "the same"
    return f"{abs(percent):.{0 if abs(percent) >= 10 else 1}f} % {'less' if percent < 0 else 'more'}"


def signed_percent(value: float, base: float) -> str:
    """Return how far a value lies from the baseline's, as "−22 %"; nothing where no percentage exists."""
    if not (math.isfinite(value) and math.isfinite(base) and base > 0):
        return ""
    percent = 100 * (value / base - 1)
    return f"{signed(percent, 0 if abs(percent) >= 9.95 else 1)} %"


def probability_text(probability: float | None) -> str:
    """Return a probability as a table says it, "" where none is known."""
    if probability is None or probability != probability:
        return ""
    percent = 100 * probability
    return "< 1 %" if percent < 1 else "> 99 %" if percent > 99 else f"{percent:.0f} %"


def span_text(ratios: tuple[float, float] | None) -> str:
    """Return where a ratio lies as percentages, "−10 to +20 %"; nothing where there is none."""
    return "" if ratios is None else " to ".join(signed_percent(end, 1.0) for end in ratios).replace(" % to", " to")


def capital(text: str) -> str:
    """Return a text that opens a sentence or a line: its first letter is a capital."""
    return text[:1].upper() + text[1:]


def joined(parts: list[str], word: str = "and") -> str:
    """Return parts as a list in a sentence."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def timing_calibration(model: TimingModel) -> str:
    """Return the timing model with its calibration, as a terminal prints both."""
    name = model.calibration
    return f"timing model {type(model).__name__}, {name if name == 'uncalibrated' else f'calibration {name}'}"


def power_calibration(choice: PowerChoice) -> str:
    """Return the power model's calibration, its error, and whether the power limit applies."""
    limit = "designs are held to tdp_w" if choice.limit else "no power limit is held"
    if not isinstance(choice.model, BoardPower):
        return f"{choice.model.calibration}; {limit}"
    left_out, off = choice.model.left_out, left_out_errors()
    of = "boards" if left_out is None else "kernels"
    errors = (
        f"{100 * off['q50']:.0f} % off in the median, within {100 * off['q90']:.0f} % for nine of ten"
        if left_out is None
        else f"eight of ten draw {signed(100 * (left_out.low - 1))} to {signed(100 * (left_out.high - 1))} %"
    )
    return f"{choice.model.calibration}; on {of} left out of the fit {errors}; other GPUs are scaled; {limit}"


def gpu_name(space: Space) -> str:
    """Return the market name of the base GPU; its sheet says where the space changes it."""
    return space.base.title


def changes_text(axes: list[Axis], row: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """Return what a design changes against the baseline, as "sm_count 132 → 156"."""
    pairs = [(axis.name, *short_values([base[axis.name], row[axis.name]])) for axis in axes]
    changed = [f"{name} {before} → {after}" for name, before, after in pairs if before != after]
    return ", ".join(changed) if changed else "nothing changed"


def clock_span(low: float, high: float) -> str:
    """Return where the share of the clock lies that a power limit leaves, ``low`` to ``high`` [1]."""
    return f"{100 * low:.0f} to {100 * high:.0f} % of the clock by the error of its watts"
