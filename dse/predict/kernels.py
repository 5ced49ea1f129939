"""Measured rows as kernels: the operator in the cache state of its harness, and the kernel that stands for it."""

from collections import Counter
from dataclasses import fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.timing.timing import Timing, TimingModel
from dse.workload.attention import attention_operator
from dse.workload.gemm import gemm_operator
from dse.workload.harness import harness_of
from dse.workload.kernel import Kernel
from dse.workload.measured_row import PRODUCTS, attention_of, product_of
from dse.workload.operator import Operator, fastest


class Launches(NamedTuple):
    """Measured launches on one GPU: rows, the kernel that the timing model finds fastest for each, and its timing."""

    frame: pd.DataFrame
    gpu: Gpu
    kernels: Kernel
    timing: Timing


def measured_operator(row: Any, capability: float, warpgroup: bool) -> Operator:
    """Return the operator of a row in the cache state of its harness; raises InputError where none can be made."""
    target = (capability, capability)
    if row.op not in PRODUCTS:
        return attention_operator("attention", attention_of(row), target, warpgroup)
    way = harness_of(str(getattr(row, "source", "")))
    return gemm_operator("gemm", product_of(row, way.distances), target, warpgroup)


def load_launches(frame: pd.DataFrame, preset: str, model: TimingModel) -> tuple[Launches, Counter[str]]:
    """Return the launches of a GPU's rows, and how many rows it has no kernel for, by reason."""
    gpu = load_sheet(preset).record()
    capability, warpgroup = float(gpu.compute_capability), bool(gpu.warpgroup_mma > 0)
    groups, kept, skipped = [], [], Counter()
    for row in frame.itertuples():
        try:
            groups.append([c.kernel for c in measured_operator(row, capability, warpgroup).candidates])
            kept.append(row.Index)
        except InputError as error:
            skipped[f"{preset}: {row.op} in {row.dtype}: {error}"] += 1
    frame = frame.loc[kept].reset_index(drop=True)
    if not groups:
        return Launches(frame, gpu, Kernel.stack([]), Timing(*[jnp.zeros(0)] * len(fields(Timing)))), skipped
    kernels = Kernel.stack([kernel for group in groups for kernel in group]).as_arrays()
    timing = jax.jit(jax.vmap(lambda kernel: model(kernel, gpu)))(kernels)
    time = np.where(np.asarray(timing.feasible) > 0, np.asarray(timing.microseconds), np.inf)
    best = fastest(time, np.cumsum([0, *(len(group) for group in groups[:-1])]))
    runs = np.isfinite(time[best])
    if not runs.all():
        skipped[f"{preset} can run none of the kernels"] = int((~runs).sum())
    kernels, timing = jax.tree.map(lambda x: x[best[runs]], (kernels, timing))
    return Launches(frame[runs].reset_index(drop=True), gpu, kernels, timing), skipped
