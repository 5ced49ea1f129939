"""A workload's launches on one GPU, kernel by kernel, and its phases where the board settles.

The programs of generated kernels take all that they compute with as arguments: they are compiled once for every GPU,
calibration and workload. Many designs of one space are :mod:`dse.evaluate.space_program`'s.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import filled_up, quick_filter_jit
from dse.evaluate.candidates import EQUAL, judge_kernel, told
from dse.evaluate.fastest import fastest_of
from dse.evaluate.phases import Chores, chores
from dse.evaluate.recorded import evaluate_recorded
from dse.hardware.gpu import Gpu
from dse.power.board import BoardPower
from dse.power.cap import at_clock, at_paces, shadow_between
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.power.sequence import LaunchSequence, in_sequence
from dse.timing.occupancy import waves
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import AnyKernel, Kernel, RecordedKernel
from dse.workload.workload import Workload

OPERATORS = 64
"""Operators that a workload is filled up to: those of most networks."""


class Launches(NamedTuple):
    """Kernels on one GPU, arrays (kernels,).

    ``timing`` and ``power`` at the clock that is asked for, if nothing limits it; the busiest SM runs ``ctas`` in
    ``waves``.
    """

    timing: Timing
    power: Power
    ctas: Array
    waves: Array


class Settled(NamedTuple):
    """A phase where the board settles, and the ``timing`` of each operator's launch (operators,) at that clock."""

    sequence: LaunchSequence
    timing: Timing


def judge_candidates(model: TimingModel, power: BoardPower, workload: Workload, gpu: Gpu) -> Launches:
    """Return every candidate of a workload on one GPU, NumPy arrays, without fast-math; traces in 64 bits."""
    if workload.recorded:
        with jax.enable_x64(True):  # one GPU can afford it, and the recurrence adds up rounding errors
            found = [jax.jit(partial(on_trace, model, power, trace))(gpu) for trace in workload.recorded]
        return jax.tree.map(lambda *values: np.stack(values), *found)
    model, workload = told(model, workload)
    found = _on_kernels(model.anonymous(), power, filled_up(workload.kernels), gpu)
    return jax.tree.map(lambda x: np.asarray(x)[: len(workload.kernels.ctas)], found)


def on_kernels(model: TimingModel, power: BoardPower, kernels: Kernel, gpu: Gpu) -> Launches:
    """Return generated kernels on one GPU (the program before jit)."""

    def one(kernel: Kernel) -> Launches:
        return Launches(*judge_kernel(model, power, kernel, gpu), *_grid(kernel, gpu))

    return jax.vmap(one)(kernels)


_on_kernels = quick_filter_jit(on_kernels)


@quick_filter_jit
def on_designs(model: TimingModel, power: BoardPower, kernels: Kernel, gpus: Gpu) -> Launches:
    """Return generated kernels (designs, kernels), each row on one of the GPUs (designs,)."""
    return jax.vmap(partial(on_kernels, model, power))(kernels, gpus)


def on_trace(model: TimingModel, power: BoardPower, trace: RecordedKernel, gpus: Gpu) -> Launches:
    """Return a traced kernel on GPUs, scalars or arrays (designs,) (the program before jit)."""
    return Launches(*evaluate_recorded(model, power, trace, gpus), *_grid(trace, gpus))


def _grid(kernel: AnyKernel, gpu: Gpu) -> tuple[Array, Array]:
    """CTAs of the busiest SM and the waves they run in."""
    grid = waves(kernel, gpu)
    return grid.full * grid.resident + grid.rest, grid.full + jnp.where(grid.rest > 0, 1.0, 0.0)


def chosen_of(workload: Workload, candidates: Launches) -> np.ndarray:
    """Return the candidate that runs fastest of each operator, counted through the workload, as a sweep chooses; the
    operator's first where none runs."""
    return fastest_of(candidates.timing, workload.starts, EQUAL)


def settle(power: PowerChoice, workload: Workload, phase: str, chosen: Launches, gpu: Gpu) -> Settled:
    """Return one phase of a workload whose operators run as the kernels ``chosen`` (operators,), NumPy arrays."""
    timing, watts = filled_up((chosen.timing, chosen.power), OPERATORS)
    found = _settled(power.model, power.limit, timing, watts, chores(workload, phase, len(timing.clock_ghz)), gpu)
    run, each = jax.tree.map(np.asarray, found)
    return Settled(run, jax.tree.map(lambda x: x[: len(workload.operators)], each))


def settled(model: BoardPower, limit: bool, timing: Timing, watts: Power, run: Chores, gpu: Gpu) -> Settled:
    """Return launches where the board settles (the program before jit)."""
    sequence = in_sequence(PowerChoice(model, limit), timing, watts, run.repeats, gpu, run.host)
    return Settled(sequence, at_clock(timing, sequence.clock, shadow_between(at_paces(timing))))


_settled = quick_filter_jit(settled)


@quick_filter_jit
def settled_on_designs(model: BoardPower, limit: bool, timing: Timing, watts: Power, run: Chores, gpus: Gpu) -> Settled:
    """Return launches (designs, operators), each row where the board of one of the GPUs (designs,) settles."""
    return jax.vmap(partial(settled, model, limit), in_axes=(0, 0, None, 0))(timing, watts, run, gpus)
