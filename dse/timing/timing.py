"""The contract of every timing model: cycles of a kernel by cause, which add up to its total."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from dse.base.brief import brief
from dse.base.error_interval import ErrorInterval
from dse.base.errors import expect
from dse.base.numerics import INFEASIBLE
from dse.base.shapes import OnBatch, Scalar
from dse.base.units import KILO
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm_library import REPRESENTATIVE, Library
from dse.workload.workload import Workload

M = TypeVar("M", bound="TimingModel")

CAUSES = {
    "selected": "instructions issue, on an SM with its fair share of the work",
    "wait": "a dependent ALU, SFU or tensor instruction is not ready",
    "short_scoreboard": "shared memory has not answered",
    "long_scoreboard": "L1, L2 or DRAM has not answered (latency)",
    "math_pipe_throttle": "a compute unit is busy: tensor cores, FP32, INT32 or SFU",
    "lg_throttle": "the path between registers, shared memory, L1 and L2 port of the SM is busy",
    "mio_throttle": "requests queue in MSHRs, network on chip and DRAM (AMALI books this queueing here)",
    "launch": "kernel launch latency: CTA launch, instruction and constant misses (AMALI's KLL)",
    "divergence": "the busiest sub-core issues more than its fair share: partly filled waves (AMALI's ID)",
    "dram_bandwidth": "DRAM's bytes take longer than everything else, which waits in their shadow",
    "l2_bandwidth": "the bytes between L2 and SMs take longer than everything else",
    "die_link": "the bytes that cross the links between dies take longer than everything else",
    "interconnect": "messages between GPUs",
}
"""The causes of a kernel's stack, named as Nsight Compute names its stalls where it has a name."""

HOST = "host"
"""What a phase adds to the causes of its kernels, where a serving engine runs it."""

PHASE_CAUSES = CAUSES | {HOST: "the GPU waits for the engine's host: launching, scheduling, sampling"}
"""The causes of a phase's stack."""


class Timing(eqx.Module):
    """Cycles of one kernel launch by cause [cycle] on the clock ``clock_ghz`` [GHz]; see CAUSES for their meaning.

    ``feasible`` is 1 where the kernel can run, else 0 (its cycles then mean nothing but stay finite). ``dram_bytes``
    [B] pass between DRAM and L2. ``hidden`` [cycle]: the SMs' work during what is booked under
    ``dram_bandwidth``, of which the stack may show a part; 0 where nothing is, or where the stack shows all of it.
    ``exposed`` [cycle]: the part of ``dram_bandwidth`` that comes on top of work and bytes, whichever is longer.
    """

    selected: OnBatch
    wait: OnBatch
    short_scoreboard: OnBatch
    long_scoreboard: OnBatch
    math_pipe_throttle: OnBatch
    lg_throttle: OnBatch
    mio_throttle: OnBatch
    launch: OnBatch
    divergence: OnBatch
    dram_bandwidth: OnBatch
    l2_bandwidth: OnBatch
    die_link: OnBatch
    interconnect: OnBatch
    clock_ghz: OnBatch
    feasible: OnBatch
    dram_bytes: OnBatch
    hidden: OnBatch | float = 0.0
    exposed: OnBatch | float = 0.0

    def __repr__(self) -> str:
        numbers, causes = {name: getattr(self, name) for name in ("clock_ghz", "feasible", "dram_bytes")}, self.stack()
        if all(eqx.is_array(x) and not isinstance(x, Tracer) for x in (*causes.values(), self.clock_ghz)):
            causes = {cause: cycles for cause, cycles in causes.items() if np.any(cycles)}
            numbers = {"microseconds": self.microseconds} | numbers | {"cycles": self.cycles}
        return brief(self, numbers | causes)

    def stack(self) -> dict[str, OnBatch]:
        """Return the cycles by cause, in the order of CAUSES."""
        return {cause: getattr(self, cause) for cause in CAUSES}

    @property
    def cycles(self) -> OnBatch:
        """All cycles of the launch: the sum of the causes, by construction."""
        first, *rest = self.stack().values()
        return sum(rest, first)

    @property
    def nanoseconds(self) -> OnBatch:
        """Time of the launch [ns]."""
        return self.cycles / self.clock_ghz

    @property
    def microseconds(self) -> OnBatch:
        """Time of the launch [us]."""
        return self.nanoseconds / KILO

    def stretched(self, factor: OnBatch) -> "Timing":
        """Return the same stack at ``factor`` times the total."""
        causes = {cause: cycles * factor for cause, cycles in self.stack().items()}
        return replace(self, **causes, hidden=self.hidden * factor, exposed=self.exposed * factor)


def causes_of(workload: Workload) -> dict[str, str]:
    """Return the causes of a workload's stack with what they mean: the host's among them where the GPU may wait."""
    return PHASE_CAUSES if workload.waits else CAUSES


class TimingModel(eqx.Module):
    """A model that times one kernel on one GPU; its fields are its coefficients and switches."""

    @abstractmethod
    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause; scalars in, scalars out. Batching is :mod:`dse.evaluate.space_program`'s."""

    def nanoseconds(self, kernel: Kernel, gpu: Gpu) -> Scalar:
        """Return the time of the launch [ns], INFEASIBLE where the kernel cannot run: all that a choice needs."""
        timing = self(kernel, gpu)
        return jnp.where(timing.feasible > 0, timing.nanoseconds, INFEASIBLE)

    def anonymous(self: M) -> M:
        """Return the model with its numbers as arrays and without a name: one compiled program serves all of them."""

        def number(x: Any) -> np.ndarray:
            whole = eqx.is_array_like(x) and not np.isscalar(x) and jnp.issubdtype(x.dtype, jnp.integer)
            return np.asarray(x) if whole else np.asarray(x, float)  # places in a table stay whole numbers

        return jax.tree.map(number, self)

    @property
    def calibration(self) -> str:
        """Name of the calibration that the coefficients come from."""
        return "uncalibrated"

    @property
    def library(self) -> Library:
        """Library of matrix products that the coefficients were fitted with, or that stands for any."""
        return REPRESENTATIVE

    @property
    def error_interval(self) -> ErrorInterval | None:
        """How far off a time may be; None where no calibration says so."""
        return None


def expect_records(kernel: Any, gpu: Any) -> None:
    """Raise InputError where a model is not called with the records of a kernel and a GPU."""
    expect("kernel", kernel, Kernel, "give the record of a kernel; dse.run times a workload")
    expect("gpu", gpu, Gpu, "give a record, as load_gpu('h100_sxm')")


def kernel_clock(kernel: Kernel, gpu: Gpu) -> OnBatch:
    """Return the clock a kernel runs at [GHz]: the tensor clock where it uses tensor cores, but boost for FP64."""
    fp64 = jnp.asarray(kernel.tensor_dtype) == TENSOR_DTYPES.index("fp64")
    at_tensor_clock = (jnp.asarray(kernel.uses_tensor) > 0) & ~fp64
    return jnp.where(at_tensor_clock, gpu.tensor_clock_ghz, gpu.boost_clock_ghz)
