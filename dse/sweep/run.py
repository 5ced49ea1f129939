"""One workload on one GPU, kernel by kernel."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, load_sheet
from dse.space.metrics import WORKLOAD_METRICS, time_metrics
from dse.timing.amali import Amali
from dse.timing.timing import CAUSES, Timing, TimingModel
from dse.timing.trace_profile import is_trace, traced_workload
from dse.units import GIGA
from dse.workload.kernel import Kernel
from dse.workload.llm import Target
from dse.workload.operator import Operator
from dse.workload.parse import load_workload
from dse.workload.workload import Workload


@dataclass(frozen=True)
class RunResult:
    """The answer for one design.

    ``kernels``: a row an operator: phase, name, class, shape, the chosen implementation, repeats, time of one launch
    [us] and of all repeats [ms], share of the phase, achieved rate [TFLOP/s] and DRAM bandwidth [GB/s], the cause that
    costs most, and the stack [ms]. ``metrics``: TTFT, time between tokens, tokens/s ... by name, each with its unit.
    """

    gpu: GpuSheet
    workload: Workload
    model: TimingModel
    kernels: pd.DataFrame
    metrics: dict[str, tuple[float, str]]

    @property
    def calibration(self) -> str:
        """Name of the timing model's calibration, or "uncalibrated"."""
        return self.model.calibration

    def stack(self, phase: str) -> dict[str, float]:
        """Return the stack of a phase [ms], causes that cost nothing left out."""
        rows = self.kernels[self.kernels["phase"] == phase]
        sums = {cause: float(rows[f"{cause}_ms"].sum()) for cause in CAUSES}
        return {cause: value for cause, value in sums.items() if value > 0}

    def summary(self) -> dict[str, Any]:
        """Return the JSON document of ``dse run --json``."""
        return {
            "gpu": self.gpu.name,
            "workload": self.workload.description,
            "calibration": self.calibration,
            "metrics": {name: {"value": value, "unit": unit} for name, (value, unit) in self.metrics.items()},
            "stack_ms": {phase.name: self.stack(phase.name) for phase in self.workload.phases},
            "kernels": self.kernels.to_dict("records"),
        }


def run(gpu: str | GpuSheet, workload: str | Workload, model: TimingModel | None = None) -> RunResult:
    """Return the timing of one workload on one GPU (names, paths or records); raises InputError when it cannot run."""
    sheet = gpu if isinstance(gpu, GpuSheet) else load_sheet(gpu)
    record = sheet.record()
    if not isinstance(workload, Workload):
        workload = _load(workload, sheet)
    model = model or Amali()
    _check_memory(sheet, workload)
    timing = _time(model, workload, record)
    parts = zip(workload.operators, workload.slices, strict=True)
    rows = [_row(operator, _chosen(sheet, operator, timing, part), timing) for operator, part in parts]
    kernels = pd.DataFrame(rows)
    kernels.insert(7, "share", kernels["time_ms"] / kernels.groupby("phase")["time_ms"].transform("sum"))
    return RunResult(sheet, workload, model, kernels, _metrics(workload, kernels))


def _load(workload: str, sheet: GpuSheet) -> Workload:
    if is_trace(workload):
        return traced_workload(workload, [sheet.numbers()])
    record = sheet.record()
    capability = float(record.compute_capability)
    return load_workload(workload, Target((capability, capability), bool(record.warpgroup_mma > 0)))


def _time(model: TimingModel, workload: Workload, gpu: Gpu) -> dict[str, np.ndarray]:
    """Time every candidate on one GPU, without fast-math; arrays of shape (candidates,)."""
    if workload.traced:
        timings = [model.on_trace(trace, gpu) for trace in workload.traces]
        timing = jax.tree.map(lambda *values: jnp.stack(values), *timings)
        return _arrays(timing, timing.microseconds, timing.cycles)

    def one(kernel: Kernel) -> tuple[Timing, jax.Array, jax.Array]:
        timing = model(kernel, gpu)
        return timing, timing.microseconds, timing.cycles

    kernels = workload.kernels.as_arrays()
    return _arrays(*jax.jit(jax.vmap(one))(kernels))


def _arrays(timing: Timing, microseconds: jax.Array, cycles: jax.Array) -> dict[str, np.ndarray]:
    values = {name: np.asarray(value, dtype=float) for name, value in timing.stack().items()}
    others = {"us": microseconds, "cycles": cycles, "feasible": timing.feasible, "dram_bytes": timing.dram_bytes}
    return values | {name: np.asarray(value, dtype=float) for name, value in others.items()}


def _check_memory(sheet: GpuSheet, workload: Workload) -> None:
    memory, have = workload.memory, float(sheet.numbers()["dram_gb"])
    if memory.total > have * GIGA:
        gpus = f" on each of {workload.gpus} GPUs" if workload.gpus > 1 else ""
        raise InputError(
            f"{workload.name}: needs {memory.total / GIGA:.1f} GB{gpus} (weights {memory.weights / GIGA:.1f}, KV cache "
            f"{memory.kv / GIGA:.1f}, activations {memory.activations / GIGA:.1f}), {sheet.title} has {have:g} GB; "
            "give more GPUs (tp), a smaller batch or context, or a narrower data type"
        )


def _chosen(sheet: GpuSheet, operator: Operator, timing: dict[str, np.ndarray], part: slice) -> tuple[int, str]:
    """Return the position and the label of the fastest candidate that runs."""
    runs = timing["feasible"][part] > 0
    if not runs.any():
        raise InputError(f"{sheet.title} cannot run {operator.name} ({operator.shape}): {why_not(operator, sheet)}")
    best = int(np.where(runs, timing["us"][part], np.inf).argmin())
    return part.start + best, operator.candidates[best].label


def why_not(operator: Operator, sheet: GpuSheet) -> str:
    """Return why a GPU has no kernel for an operator: the data type or instructions it lacks, or the CTA's size."""
    numbers = sheet.numbers()
    kernels = [candidate.kernel for candidate in operator.candidates]
    has = sheet.tensor_types()
    missing = sorted(operator.tensor_types() - set(has))
    if missing:
        return f"its tensor cores have no {' or '.join(missing)}; they have {', '.join(has) or 'no type at all'}"
    if all(float(k.compute_capability) > numbers["compute_capability"] for k in kernels):
        need = min(float(k.compute_capability) for k in kernels)
        return f"its instructions need compute capability {need:g}, it has {numbers['compute_capability']:g}"
    smallest = min(float(k.shared_kib) for k in kernels)
    return (
        f"no CTA fits an SM: the smallest needs {smallest:g} KiB of shared memory, an SM has "
        f"{numbers['shared_memory_kib']:g} KiB and {numbers['registers_per_sm']:g} registers"
    )


def _row(operator: Operator, chosen: tuple[int, str], timing: dict[str, np.ndarray]) -> dict[str, Any]:
    index, label = chosen
    us = float(timing["us"][index])
    per_cycle = us / float(timing["cycles"][index]) * operator.repeats / 1e3
    stack = {cause: float(timing[cause][index]) * per_cycle for cause in CAUSES}
    kernel = operator.candidates[0].kernel
    return {
        "phase": operator.phase,
        "kernel": operator.name,
        "class": operator.kind,
        "shape": operator.shape,
        "implementation": label,
        "repeats": operator.repeats,
        "cycles": float(timing["cycles"][index]),
        "time_us": us,
        "time_ms": us * operator.repeats / 1e3,
        "tflops": 2 * float(kernel.fma) / us * 1e-6,
        "dram_gbs": float(timing["dram_bytes"][index]) / us * 1e-3,
        "bound_by": max(stack, key=lambda cause: stack[cause]),
        **{f"{cause}_ms": value for cause, value in stack.items()},
    }


def _metrics(workload: Workload, kernels: pd.DataFrame) -> dict[str, tuple[float, str]]:
    values = time_metrics(workload, kernels.groupby("phase")["time_ms"].sum().to_dict())
    if workload.memory.total:
        values["memory_gb"] = workload.memory.total / GIGA
    return {name: (float(value), WORKLOAD_METRICS[name][0]) for name, value in values.items()}
