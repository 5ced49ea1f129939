"""A fitted predictor as a timing model: the same call as any other, so that it can be swept and compared."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.numerics import safe_div
from dse.predict.features import features
from dse.predict.predictors import Fitted
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel

KINDS = {"gemm": 0, "gemm_bias": 0, "bmm": 0, "attn_prefill": 1, "attn_decode": 2}
"""Operator -> kind of kernel, as :func:`kernel_kind` tells them apart."""


def kernel_kind(kernel: Kernel) -> Array:
    """Return the kind of a kernel: 0 matrix product, 1 attention prefill, 2 attention decode, 3 anything else."""
    attention = jnp.where(jnp.asarray(kernel.b_bytes) > 0, 1, 2)
    computes = jnp.where(jnp.asarray(kernel.a_bytes) > 0, 0, attention)
    return jnp.where(jnp.asarray(kernel.fma) > 0, computes, 3)


class Predicted(TimingModel):
    """Cycles by predictors, one for each kind of kernel; causes as ``base`` sees them, stretched to that total.

    ``predictors`` belong to ``kinds``; ``with_base`` says which of them see the base model's cycles. Kernels of other
    kinds keep the base's timing. Nothing holds a predictor to the contract's "more bandwidth is never slower".

    Worked example, an H100-like sweep by what was learned on an A100::

        from dse import load_gpu, load_workload
        from dse.predict.predict import predict

        model = predict("aiconfigurator__gemm.csv", "h100_sxm").model()     # a TimingModel
        timing = model(kernel, load_gpu("h100_sxm"))                       # one kernel, one GPU; jax.vmap for many
    """

    base: TimingModel = eqx.field(default_factory=Amali)
    predictors: tuple[Fitted, ...] = ()
    kinds: tuple[int, ...] = eqx.field(default=(), static=True)
    with_base: tuple[bool, ...] = eqx.field(default=(), static=True)
    learned_on: str = eqx.field(default="", static=True)

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars)."""
        timing = self.base(kernel, gpu)
        x, kind, total = features(kernel, gpu, timing), kernel_kind(kernel), timing.cycles
        for predictor, of, with_base in zip(self.predictors, self.kinds, self.with_base, strict=True):
            total = jnp.where(kind == of, predictor(x if with_base else x[:-1]), total)
        return timing.stretched(safe_div(total, timing.cycles))

    @property
    def calibration(self) -> str:
        """What was learned from."""
        return f"learned on {self.learned_on}" if self.learned_on else "uncalibrated"
