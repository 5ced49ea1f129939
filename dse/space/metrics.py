"""Names and units of what a sweep computes: the vocabulary of objectives and constraints."""

import re
from collections.abc import Mapping
from typing import Any

from dse.base.units import KILO
from dse.hardware.peak import PEAK_METRICS
from dse.hardware.schema import gpu_schema
from dse.workload.workload import Workload

PLAIN = re.compile(r"(?:([^\W\d]\w*)\.)?([^\W\d]\w*)")
"""A metric by its name alone, of a workload or of the design."""

DESIGN_METRICS = {
    "die_mm2": ("mm2", "die area by the area model"),
    "die_usd": (
        "USD",
        "cost of the good dies of one GPU (several above one reticle): wafers and yield, without package, test and "
        "memory",
    ),
    "memory_usd": ("USD", "price of the DRAM by type and capacity, published estimates"),
    **{name: ("TFLOP/s", f"dense {kind.title} peak at the tensor clock") for name, kind in PEAK_METRICS.items()},
}
"""Metric -> unit and meaning, of a design whatever it runs."""

WORKLOAD_METRICS = {
    "time_ms": ("ms", "time of one run"),
    "ttft_ms": ("ms", "time to first token: the prefill's time"),
    "tbt_ms": ("ms", "time between tokens: a decode step's time"),
    "tokens_per_s": (
        "token/s",
        "tokens a second, all requests and GPUs of the workload: generated ones, or those of the prompts in a prefill",
    ),
    "energy_j": ("J", "energy of the boards in one run, all GPUs of the workload"),
    "power_w": ("W", "mean power of one board while it runs"),
    "clock_share": ("1", "share of the requested clock that the power limit (tdp_w) leaves, the lowest of its phases"),
    "tokens_per_joule": ("token/J", "tokens for each joule of the boards: performance per watt"),
    "joules_per_token": ("J/token", "energy of the boards for each token"),
    "dram_gb": ("GB", "bytes between DRAM and L2 of one GPU in one run (1 GB = 1e9 B)"),
    "memory_gb": ("GB", "DRAM capacity that one GPU needs (1 GB = 1e9 B)"),
}
"""Metric -> unit and meaning, of one workload on a design."""

USD = "usd_per_mtoken"

PRICED_METRICS = {
    USD: (
        "USD/Mtoken",
        "dollars for a million tokens at the base GPU's price of an hour, if it never waits for requests",
    ),
}
"""The same of metrics that are computed where an objective or a constraint names them."""

MORE_IS_BETTER = ("tokens_per_s", "clock_share", "tokens_per_joule")
"""Metrics of a workload of which more is better; of all others less is."""

PHASE_OF = {"ttft_ms": "prefill", "tbt_ms": "decode"}
"""Metric of one phase's time -> the phase."""


def design_metrics() -> list[str]:
    """Return the metrics of a design."""
    return list(DESIGN_METRICS)


def workload_metrics(workload: Workload) -> list[str]:
    """Return the metrics that a workload has: TTFT needs a prefill, time between tokens a decode."""
    phases = {phase.name for phase in workload.phases}
    left_out = {metric for metric, phase in PHASE_OF.items() if phase not in phases}
    if not workload.tokens:
        left_out |= {"tokens_per_s", "tokens_per_joule", "joules_per_token"}
    return [metric for metric in WORKLOAD_METRICS if metric not in left_out]


def priced_metrics(workload: Workload) -> list[str]:
    """Return the metrics that follow from a workload's tokens and a price."""
    return list(PRICED_METRICS) if workload.tokens else []


def time_metrics(workload: Workload, times: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that follow from the time [ms] of one run of each phase, numbers or arrays alike."""
    metrics: dict[str, Any] = {"time_ms": sum(times[phase.name] * phase.runs for phase in workload.phases)}
    metrics |= {metric: times[phase] for metric, phase in PHASE_OF.items() if phase in times}
    if workload.tokens:
        metrics["tokens_per_s"] = workload.tokens / metrics["time_ms"] * KILO
    return metrics


def energy_metrics(
    workload: Workload, times: Mapping[str, Any], phases: Mapping[str, tuple[Any, Any]]
) -> dict[str, Any]:
    """Return the metrics that follow from energy [J] and clock share of one run of each phase on one board.

    ``times`` [ms] as for :func:`time_metrics`; numbers or arrays alike.
    """
    runs = {phase.name: phase.runs for phase in workload.phases}
    joules = sum(phases[name][0] * count for name, count in runs.items())
    seconds = sum(times[name] * count for name, count in runs.items()) / KILO
    lowest: Any = 1.0
    for _, share in phases.values():
        lowest = (lowest + share - abs(lowest - share)) / 2  # the smaller one, of numbers or arrays
    metrics: dict[str, Any] = {
        "energy_j": joules * workload.gpus,
        "power_w": joules / seconds,
        "clock_share": lowest,
    }
    if workload.tokens:
        metrics["joules_per_token"] = metrics["energy_j"] / workload.tokens
        metrics["tokens_per_joule"] = workload.tokens / metrics["energy_j"]
    return metrics


def metric_unit(text: str) -> str:
    """Return the unit of a plain metric or attribute, and an empty text for anything composed."""
    if text in DESIGN_METRICS:
        return DESIGN_METRICS[text][0]
    if text in gpu_schema():
        return gpu_schema()[text].unit
    workload, metric = named_metric(text)
    known = WORKLOAD_METRICS | PRICED_METRICS
    return known[metric][0] if workload and metric in known else ""


def named_metric(text: str) -> tuple[str, str]:
    """Return the workload and the metric of a plain ``WORKLOAD.METRIC``, no workload of a plain name, and two empty
    texts of anything composed."""
    plain = PLAIN.fullmatch(text.strip())
    return (plain[1] or "", plain[2]) if plain else ("", "")
