"""The contract of every power model: watts of a kernel by component, which add up to its total."""

from abc import abstractmethod
from dataclasses import fields
from typing import Any

import equinox as eqx
from jax import Array

from dse.base.error_interval import ErrorInterval
from dse.base.shapes import OnBatch
from dse.hardware.area import DieArea
from dse.hardware.gpu import Gpu
from dse.timing.timing import Timing
from dse.workload.kernel import Kernel, RecordedKernel

COMPONENTS = {
    "constant": "what the board draws whatever runs: regulators, fans, memory and links at rest",
    "static": "leakage of the die that is powered",
    "idle_sm": "SMs without work",
    "idle_units": "lanes and tensor cores of clocked SMs, their clock gated: what is left of it",
    "instruction": "instruction fetch, instruction cache, buffer, decode and scheduling",
    "pipeline": "clocked pipeline of the SMs: control, registers and L1, not lanes and tensor cores",
    "register_file": "register reads and writes",
    "int32": "integer arithmetic",
    "fp32": "FP32 and packed FP16 arithmetic on CUDA cores",
    "fp64": "FP64 arithmetic on CUDA cores",
    "sfu": "special functions",
    "tensor": "tensor cores",
    "texture": "texture units",
    "shared_memory": "shared memory",
    "l1": "L1 data cache",
    "constant_cache": "constant cache",
    "l2": "last-level cache",
    "noc": "network on chip",
    "dram": "DRAM and its controllers",
    "interconnect": "links to other GPUs",
}
"""The components of a power breakdown, one vocabulary for every model, with what they hold."""


class Power(eqx.Module):
    """Average power of one kernel launch by component [W]; see COMPONENTS for their meaning."""

    constant: OnBatch
    static: OnBatch
    idle_sm: OnBatch
    idle_units: OnBatch
    instruction: OnBatch
    pipeline: OnBatch
    register_file: OnBatch
    int32: OnBatch
    fp32: OnBatch
    fp64: OnBatch
    sfu: OnBatch
    tensor: OnBatch
    texture: OnBatch
    shared_memory: OnBatch
    l1: OnBatch
    constant_cache: OnBatch
    l2: OnBatch
    noc: OnBatch
    dram: OnBatch
    interconnect: OnBatch

    def breakdown(self) -> dict[str, OnBatch]:
        """Return the watts by component, in the order of COMPONENTS."""
        return {component: getattr(self, component) for component in COMPONENTS}

    @property
    def watts(self) -> OnBatch:
        """Power of the board [W]: the sum of the components, by construction."""
        total = self.constant
        for field in fields(self)[1:]:
            total = total + getattr(self, field.name)
        return total


class PowerModel(eqx.Module):
    """A model of the power of one kernel on one GPU; its fields are its coefficients.

    ``area``: the area model that goes with it; ``cap_width``: half width of the bend at the power limit, relative to
    the limit.
    """

    area: eqx.AbstractVar[DieArea]
    cap_width: eqx.AbstractVar[Array]

    @abstractmethod
    def __call__(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> Power:
        """Return the watts by component; scalars in, scalars out. Batching is :mod:`dse.evaluate.space_program`'s."""

    @abstractmethod
    def counts(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> Any:
        """Return what :meth:`uncapped` asks of a generated kernel (scalars)."""

    @abstractmethod
    def recorded_counts(self, kernel: RecordedKernel, timing: Timing, gpus: Gpu) -> Any:
        """Return the same of a recorded kernel; fields of ``gpus`` are scalars or of shape (designs,)."""

    @abstractmethod
    def uncapped(self, counts: Any, gpu: Gpu) -> Power:
        """Return the watts of an activity by component if nothing limited them; scalars or (designs,)."""

    @abstractmethod
    def draw(self, clock_ghz: Array, gpu: Gpu) -> Any:
        """Return how voltage follows the clock of a launch, a :class:`dse.power.power_limit.VoltageLine`."""

    @abstractmethod
    def limit(self, gpu: Gpu) -> Array:
        """Return the power at which the board settles [W]."""

    @abstractmethod
    def idle(self, clock_ghz: Array, gpu: Gpu) -> Power:
        """Return the watts by component of a board at rest, its clock held."""

    def between_kernels(self, clock_ghz: Array, gpu: Gpu) -> Power:
        """Return the watts by component of a board that waits for the next kernel of a run: those at rest, unless a
        model knows more."""
        return self.idle(clock_ghz, gpu)

    @abstractmethod
    def with_area(self, area: DieArea) -> "PowerModel":
        """Return the model with another area model, as far as that decides its watts."""

    @property
    def calibration(self) -> str:
        """Name of the calibration that the coefficients come from."""
        return "uncalibrated"

    @property
    def error_interval(self) -> ErrorInterval | None:
        """How far off the watts may be; None where no calibration says so."""
        return None
