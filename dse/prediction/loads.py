"""Features of watts: what each part of a board is busy with, as shares of the board's power limit.

Boards of a generation draw about the same share of their limit at the same load, so that a share of the limit carries
over where watts do not. The time under the shares is the data sheet's: the target's own is not known.
"""

import jax
import jax.numpy as jnp
import numpy as np

from dse.base.compilation import quick_filter_jit
from dse.evaluate.batching import over_arrays
from dse.hardware.gpu import Gpu
from dse.prediction.features import DEMANDS, demands
from dse.timing.timing import kernel_clock
from dse.workload.kernel import Kernel

BUSY = ("arithmetic", "cold", "warm", "written", "operands", "launch")
"""Demands whose share of the data sheet's time is a feature."""

LOADS = {name: f"the power limit times the share of time of: {DEMANDS[name]}" for name in BUSY} | {
    "limit": "the board's power limit",
}
"""Feature -> meaning; each in watts."""


def demand_ns(kernels: Kernel, gpu: Gpu) -> np.ndarray:
    """Return the demands of kernels (kernels,) on a GPU [ns], shape (kernels, demands)."""
    return np.asarray(_demand_ns(jax.tree.map(jnp.asarray, kernels), gpu), dtype=float)


@quick_filter_jit
def _demand_ns(kernels: Kernel, gpu: Gpu) -> jax.Array:
    return over_arrays(lambda kernel: demands(kernel, gpu) / kernel_clock(kernel, gpu), kernels)


def loads(busy_ns: np.ndarray, limit_w: float) -> np.ndarray:
    """Return LOADS [W] of rows with demands ``busy_ns`` (rows, demands) on a board, shape (rows, loads)."""
    names = list(DEMANDS)
    time = busy_ns[:, names.index("roofline")] + busy_ns[:, names.index("launch")]
    shares = busy_ns[:, [names.index(name) for name in BUSY]] / time[:, None]
    return limit_w * np.column_stack([shares, np.ones(len(busy_ns))])
