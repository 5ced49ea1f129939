"""Kernels as points of the roofline: FLOP per byte of DRAM, FLOP/s reached, and the roof above them."""

from typing import Any

import pandas as pd

from dse.base.units import GIGA, KILO, MEGA
from dse.evaluate.evaluation import WorkloadResult
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import GpuSheet
from dse.workload.kernel import AnyKernel, Kernel

TERA = KILO * GIGA

TOTAL = "total"
"""The row of a whole phase."""


def bandwidth_gbs(sheet: GpuSheet) -> float:
    """Return the DRAM bandwidth that a streaming read sustains [GB/s]: the slope of the roof."""
    numbers = sheet.numbers()
    return numbers["dram_bandwidth_gbs"] * numbers["dram_sustained_fraction"]


def roofline_points(sheet: GpuSheet, result: WorkloadResult) -> pd.DataFrame:
    """Return a row an operator, and one a phase (kernel "total", operator -1), for the first design of ``result``.

    ``intensity`` [FLOP/B]; ``tflops`` reached; ``peak_tflops`` of ``unit`` (tensor or vector, and data type) at the
    sheet's clock; ``roof_tflops`` = min(peak, intensity x bandwidth); ``of_roof`` [1]; ``dram_gbs``; ``of_bandwidth``
    [1]. None where there is no such number: a kernel without multiply-adds has no place on the roofline, one without
    DRAM traffic no intensity. A phase's peak is that of its kernels one after another; its time holds that in which
    its GPU waits for a serving engine's host.
    """
    rows = []
    for phase in result.workload.phases:
        numbers = [k for k, operator in enumerate(result.workload.operators) if operator.phase == phase.name]
        parts = [_counts(sheet, k, result) for k in numbers]
        idle = result.waits(phase.name, 0) / GIGA
        rows += [_point(sheet, counts) for counts in [*parts, _together(phase.name, parts, idle)]]
    return pd.DataFrame(rows)


def _counts(sheet: GpuSheet, k: int, result: WorkloadResult) -> dict[str, Any]:
    """FLOP, bytes and seconds of all repeats of an operator, and the seconds that its FLOP would take at the peak."""
    operator = result.workload.operators[k]
    kernel = result.workload.candidate(k, int(result.chosen[0, k])).kernel
    unit, dtype = _unit(kernel)
    flop = 2.0 * float(kernel.fma) * operator.repeats
    return {
        "operator": k,
        "phase": operator.phase,
        "kernel": operator.name,
        "unit": f"{unit} {dtype}" if flop else None,
        "flop": flop,
        "bytes": float(result.timing.dram_bytes[0, k]) * operator.repeats,
        "seconds": float(result.microseconds[0, k]) * operator.repeats / MEGA,
        "at_peak": flop / (peak_tflops(sheet.numbers(), unit, dtype) * TERA) if flop else 0.0,
    }


def _unit(kernel: AnyKernel) -> tuple[str, str]:
    """Return the unit and the data type that do a kernel's multiply-adds; a trace's are the tensor cores'."""
    if not isinstance(kernel, Kernel):
        return "tensor", kernel.busiest_tensor_type or "bf16"
    if float(kernel.fma_lanes) > 0 or not kernel.tensor_types:
        return "vector", "fp32"
    return "tensor", TENSOR_DTYPES[int(kernel.tensor_dtype)]


def _together(phase: str, parts: list[dict[str, Any]], idle: float) -> dict[str, Any]:
    """Return the sums of a phase's kernels, its time with ``idle`` [s] in which the GPU waits."""
    sums = {key: sum(part[key] for part in parts) for key in ("flop", "bytes", "seconds", "at_peak")}
    sums |= {"seconds": sums["seconds"] + idle}
    units = list(dict.fromkeys(part["unit"] for part in parts if part["unit"]))
    return {"operator": -1, "phase": phase, "kernel": TOTAL, "unit": ", ".join(units) or None, **sums}


def _point(sheet: GpuSheet, counts: dict[str, Any]) -> dict[str, Any]:
    flop, traffic, seconds = counts["flop"], counts["bytes"], counts["seconds"]
    slope = bandwidth_gbs(sheet)
    peak = flop / counts["at_peak"] / TERA if flop else None
    intensity = flop / traffic if flop and traffic else None
    roof = peak if peak is None or intensity is None else min(peak, intensity * slope / KILO)
    reached = flop / seconds / TERA if flop else None
    return {
        "operator": counts["operator"],
        "phase": counts["phase"],
        "kernel": counts["kernel"],
        "unit": counts["unit"],
        "intensity": intensity,
        "tflops": reached,
        "peak_tflops": peak,
        "roof_tflops": roof,
        "of_roof": reached / roof if reached is not None and roof else None,
        "dram_gbs": traffic / seconds / GIGA,
        "of_bandwidth": traffic / seconds / GIGA / slope,
    }
