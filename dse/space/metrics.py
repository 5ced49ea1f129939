"""Names and units of what a sweep computes: the vocabulary of objectives and constraints."""

from collections.abc import Mapping
from typing import Any

from dse.hardware.schema import gpu_schema
from dse.units import KILO
from dse.workload.workload import Workload

DESIGN_METRICS = {
    "die_mm2": ("mm2", "die area by the area model"),
    "peak_bf16_tflops": ("TFLOP/s", "dense BF16 peak at the tensor clock"),
    "peak_fp8_tflops": ("TFLOP/s", "dense FP8 peak at the tensor clock"),
}
"""Metric -> unit and meaning, of a design whatever it runs."""

WORKLOAD_METRICS = {
    "time_ms": ("ms", "time of one run"),
    "ttft_ms": ("ms", "time to first token: the prefill's time"),
    "tbt_ms": ("ms", "time between tokens: a decode step's time"),
    "tokens_per_s": ("token/s", "tokens a second, all requests: generated ones, or those of the prompts in a prefill"),
    "dram_gb": ("GB", "bytes between DRAM and L2 in one run (1 GB = 1e9 B)"),
    "memory_gb": ("GB", "DRAM capacity that one GPU needs (1 GB = 1e9 B)"),
}
"""Metric -> unit and meaning, of one workload on a design."""

_PHASE_METRICS = {"ttft_ms": "prefill", "tbt_ms": "decode"}


def design_metrics() -> list[str]:
    """Return the metrics of a design."""
    return list(DESIGN_METRICS)


def workload_metrics(workload: Workload) -> list[str]:
    """Return the metrics that a workload has: TTFT needs a prefill, time between tokens a decode."""
    phases = {phase.name for phase in workload.phases}
    left_out = {metric for metric, phase in _PHASE_METRICS.items() if phase not in phases}
    if not workload.tokens:
        left_out.add("tokens_per_s")
    return [metric for metric in WORKLOAD_METRICS if metric not in left_out]


def time_metrics(workload: Workload, times: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that follow from the time [ms] of one run of each phase, numbers or arrays alike."""
    metrics: dict[str, Any] = {"time_ms": sum(times[phase.name] * phase.runs for phase in workload.phases)}
    metrics |= {metric: times[phase] for metric, phase in _PHASE_METRICS.items() if phase in times}
    if workload.tokens:
        metrics["tokens_per_s"] = workload.tokens / metrics["time_ms"] * KILO
    return metrics


def metric_unit(text: str) -> str:
    """Return the unit of a plain metric or attribute, and an empty text for anything composed."""
    if text in DESIGN_METRICS:
        return DESIGN_METRICS[text][0]
    if text in gpu_schema():
        return gpu_schema()[text].unit
    metric = text.rpartition(".")[2]
    return WORKLOAD_METRICS[metric][0] if metric in WORKLOAD_METRICS and text.count(".") == 1 else ""
