"""A fitted predictor as a timing model: the same call as any other, so that it can be swept and compared."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.base.numerics import safe_div
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.prediction.features import features
from dse.prediction.predictors import FittedPredictor
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel

KINDS = {"gemm": 0, "gemm_bias": 0, "bmm": 0, "attn_prefill": 1, "attn_decode": 2}
"""Operator -> kind of kernel, as :func:`kernel_kind` tells them apart."""


CUDA_CORES = -1
"""Number of the type of kernels that use no tensor cores."""


def type_of(dtype: str) -> int:
    """Return the number of a data type as :func:`kernel_type` tells them apart."""
    return TENSOR_DTYPES.index(dtype) if dtype in TENSOR_DTYPES else CUDA_CORES


def kernel_type(kernel: Kernel) -> Array:
    """Return the data type that a kernel computes in: its place in TENSOR_DTYPES, CUDA_CORES where it uses none."""
    return jnp.where(jnp.asarray(kernel.uses_tensor) > 0, jnp.asarray(kernel.tensor_dtype), CUDA_CORES)


def kernel_kind(kernel: Kernel) -> Array:
    """Return the kind of a kernel: 0 matrix product, 1 attention prefill, 2 attention decode, 3 anything else."""
    attention = jnp.where(jnp.asarray(kernel.b_bytes) > 0, 1, 2)
    computes = jnp.where(jnp.asarray(kernel.a_bytes) > 0, 0, attention)
    return jnp.where(jnp.asarray(kernel.fma) > 0, computes, 3)


class Predicted(TimingModel):
    """A timing model by predictors, one for each kind of kernel and data type.

    The causes of the stack are those of ``base``, scaled to the predicted total. Kernels of other kinds and types keep
    the base's timing. Nothing ensures that more bandwidth is never slower, as the contract of timing models has it.

    Worked example, an H100-like sweep by what was learned on an A100::

        from dse import load_gpu, load_workload
        from dse.prediction.predict import predict

        model = predict("aiconfigurator__gemm.csv", "h100_sxm").model()     # a TimingModel
        timing = model(kernel, load_gpu("h100_sxm"))                       # one kernel, one GPU; jax.vmap for many
    """

    base: TimingModel = eqx.field(default_factory=Amali)
    predictors: tuple[FittedPredictor, ...] = ()
    kinds: tuple[int, ...] = eqx.field(default=(), static=True)  # of kernel, of each predictor
    types: tuple[int, ...] = eqx.field(default=(), static=True)  # of data, of each predictor
    with_base: tuple[bool, ...] = eqx.field(default=(), static=True)  # whether it sees the base's cycles
    learned_on: str = eqx.field(default="", static=True)

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars)."""
        timing = self.base(kernel, gpu)
        x, total = features(kernel, gpu, timing), timing.cycles
        learned = zip(self.predictors, self.kinds, self.types, self.with_base, strict=True)
        for predictor, kind, dtype, with_base in learned:
            its = (kernel_kind(kernel) == kind) & (kernel_type(kernel) == dtype)
            its = its & (jnp.asarray(kernel.launches) >= 1.0)  # what stands for no kernel takes no time
            total = jnp.where(its, predictor(x if with_base else x[:-1]), total)
        return timing.stretched(safe_div(total, timing.cycles))

    @property
    def calibration(self) -> str:
        """The rows that were learned from, and the model of all other kernels."""
        if not self.learned_on:
            return "uncalibrated"
        base = f"{type(self.base).__name__.lower()}, {self.base.calibration}"
        return f"learned on {self.learned_on}; kernels of other kinds and types by {base}"
