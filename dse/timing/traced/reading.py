"""Workloads of either sort by name: a trace directory is simulated for GPUs, all else is generated for them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dse.hardware.presets import GpuSheet
from dse.timing.traced.trace_profile import KEYS, is_trace, traced_workload
from dse.traces.traced_kernel import TracedKernel
from dse.workload.parse import load_workload
from dse.workload.target import Target
from dse.workload.workload import Workload

TRACE_LINES = ("l1_line_bytes", "sector_bytes")
"""Attributes that traces are simulated with one value of."""


def is_recorded(workload: str | Path | Workload) -> bool:
    """Tell whether a workload is recorded: loaded from a trace, or the path of one."""
    return bool(workload.recorded) if isinstance(workload, Workload) else is_trace(workload)


def read_workload(
    use: str,
    target: Target,
    simulated_for: Callable[[], Sequence[Mapping[str, float]]],
    sheets: Sequence[GpuSheet],
    name: str | None = None,
) -> Workload:
    """Return the workload that ``use`` names; raises InputError.

    ``target``: for which GPUs kernels are generated; ``simulated_for()``: the GPUs (attribute -> number) whose caches a
    trace is simulated with; ``sheets``: the GPUs that must have what it needs.
    """
    if is_trace(use):
        return traced_workload(use, simulated_for(), name)
    return load_workload(use, target, name=name, gpus=sheets)


def why_not_simulated(workload: Workload, numbers: Mapping[str, float], attribute: str, value: float) -> str:
    """Return why a workload's traces do not serve a GPU whose ``attribute`` has another ``value``, "" where they do.

    ``numbers``: the attributes of the GPU that they serve. Generated kernels serve every GPU.
    """
    if workload.recorded and attribute in TRACE_LINES:
        return "traces are simulated with L1 lines of 128 bytes in sectors of 32"
    wanted = np.array([(dict(numbers) | {attribute: value})[key] for key in KEYS])
    traces = (kernel for kernel in workload.recorded if isinstance(kernel, TracedKernel))
    if attribute in KEYS and not all((trace.made_for == wanted).all(axis=1).any() for trace in traces):
        return "the trace was not simulated for this value; give its path instead of a loaded workload"
    return ""
