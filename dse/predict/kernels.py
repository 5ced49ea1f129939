"""Measured rows as kernels on a GPU: the fastest of those that can have run, and its timing."""

from collections import Counter
from dataclasses import fields
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pandas as pd

from dse.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.timing.chosen import fastest_kernels
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.measured_operator import operator_on


class Launches(NamedTuple):
    """Measured launches on one GPU: rows, the kernel that the timing model finds fastest for each, and its timing."""

    frame: pd.DataFrame
    gpu: Gpu
    kernels: Kernel
    timing: Timing


def load_launches(frame: pd.DataFrame, preset: str, model: TimingModel) -> tuple[Launches, Counter[str]]:
    """Return the launches of a GPU's rows, and how many rows it has no kernel for, by reason."""
    gpu = load_sheet(preset).record()
    operators, kept, skipped = [], [], Counter()
    for row in frame.itertuples():
        try:
            operators.append(operator_on(gpu, row))
            kept.append(row.Index)
        except InputError as error:
            skipped[f"{preset}: {row.op} in {row.dtype}: {error}"] += 1
    frame = frame.loc[kept].reset_index(drop=True)
    if not operators:
        return Launches(frame, gpu, Kernel.stack([]), Timing(*[jnp.zeros(0)] * len(fields(Timing)))), skipped
    kernels, timing = fastest_kernels(model, operators, gpu)
    runs = timing.feasible > 0
    if not runs.all():
        skipped[f"{preset} can run none of the kernels"] = int((~runs).sum())
    kernels, timing = jax.tree.map(lambda x: x[runs], (kernels, timing))
    return Launches(frame[runs].reset_index(drop=True), gpu, kernels, timing), skipped
