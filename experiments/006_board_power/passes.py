"""Whole passes of networks at locked clocks (EnergAIzer's A100 PCIe and A10): what the board does in one of them."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.evaluate.shared_programs import fastest_kernels
from dse.evaluate.steps import activities
from dse.hardware.gpu import Gpu
from dse.hardware.presets import changed, preset_sheet
from dse.power.activity import Activity
from dse.timing.amali import Amali
from dse.workload.networks.eager_forward import find_forward, forward_operators
from experiments import data

NETWORKS = {"eai_bertmodel_large": "bert_large", "eai_gpt2model_gpt2": "gpt2", "eai_optmodel_opt-1p3b": "opt_13"}
"""Networks of the table whose operators are known -> their forward pass; Qwen2 and networks of images are left out."""

DEVICES = {"A100-PCIE-40GB": "a100_pcie_40gb", "A10": "a10"}

MOSTLY_BUSY = 0.6
"""Share of a pass that its kernels must fill by the timing model: less is a pass that waited for its host, and a pass
over its inverse did not compute what it says [1]."""


@dataclass(frozen=True)
class Passes:
    """Passes on one board: the rows, and of each its clocks (``gpu``, one a row) and all its launches together."""

    table: pd.DataFrame
    gpu: Gpu
    counts: Activity


@cache
def passes(device: str) -> Passes:
    """Return the passes of a board at its locked clocks, unfused attention, host-bound ones left out."""
    table = data.frame("energaizer__energy")
    known = table.group.isin(list(NETWORKS)) & table.notes.str.contains("attn=eager") & (table.op == "model_prefill")
    table = table[known & (table.device == device)].reset_index(drop=True)
    found = [_pass(row, DEVICES[device]) for row in table.itertuples()]
    busy = np.array([kernels_us for _, _, kernels_us in found]) / table.latency_us.to_numpy()
    kept = np.flatnonzero((busy >= MOSTLY_BUSY) & (busy <= 1 / MOSTLY_BUSY))
    gpu, counts = (_stacked([found[i][part] for i in kept]) for part in (0, 1))
    return Passes(table.iloc[kept].assign(busy=busy[kept]).reset_index(drop=True), gpu, counts)


def _pass(row: Any, preset: str) -> tuple[Gpu, Activity, float]:
    """The GPU at the row's clock, the activity of a pass of the measured time, and its kernels' time [us]."""
    gpu = locked(preset, row.clock_mhz)
    counts, kernels_us = _launches(preset, row.clock_mhz, row.group, row.dtype, int(row.batch), int(row.seq_q))
    return gpu, counts._replace(nanoseconds=jnp.asarray(row.latency_us * 1e3)), kernels_us


@cache
def locked(preset: str, clock_mhz: float) -> Gpu:
    """Return a GPU whose SMs are locked to a clock."""
    clocks = dict.fromkeys(("boost_clock_mhz", "tensor_clock_mhz"), float(clock_mhz))
    return changed(preset_sheet(preset), clocks, "locked").record()


@cache
def _launches(preset: str, clock_mhz: float, group: str, dtype: str, batch: int, tokens: int) -> tuple[Activity, float]:
    """The activities of all launches of a pass together, as AMALI chooses and times its kernels, and their time."""
    gpu = locked(preset, clock_mhz)
    capability = float(gpu.compute_capability)
    operators = forward_operators(find_forward(NETWORKS[group]), batch, tokens, capability, False, dtype)
    kernels, timing = fastest_kernels(Amali(), operators, gpu)
    counts = activities(kernels, timing, gpu)
    repeats = jnp.asarray([operator.repeats for operator in operators])
    total = jax.tree.map(lambda x: jnp.sum(x * repeats), counts)
    busy = jnp.sum(counts.busy * counts.nanoseconds * repeats) / total.nanoseconds
    types = {"tensor_dtype": jnp.max(counts.tensor_dtype), "clock_ghz": jnp.max(counts.clock_ghz), "busy": busy}
    return total._replace(**types), float(total.nanoseconds) / 1e3


def _stacked(records: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(v) for v in x]), *records)
