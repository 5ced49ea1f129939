"""The steps of an evaluation on arrays of kernels and GPUs: time, power, the settled clock, a workload's metrics.

All programs are made of them: a space's own, those that workloads share, and derivatives.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.units import MEGA
from dse.evaluate.batching import float_type, over_arrays, with_kernel_axis
from dse.hardware.gpu import Gpu
from dse.power.activity import Activity, activity
from dse.power.board import BoardPower
from dse.power.models import PowerChoice
from dse.power.power import Power, PowerModel
from dse.power.power_limit import OperatingPoint, at_clock, at_paces, shadow_between
from dse.power.sequence import LaunchSequence, SequenceTotals, in_sequence, of_sums
from dse.space.metrics import energy_metrics, time_metrics
from dse.timing.timing import Timing, TimingModel
from dse.timing.traced.models import on_trace
from dse.workload.kernel import Kernel, RecordedKernel
from dse.workload.serving_engine import Host
from dse.workload.workload import Workload

Launch = tuple[Timing, Power]
"""Timing and power of a launch at the clock that is asked for, if nothing limits it."""

PhaseRun = tuple[np.ndarray | Array, tuple[np.ndarray | Array, np.ndarray | Array] | None]
"""What runs in a phase: how often each operator (operators,), and the times [us] of a serving engine's host, next to
the GPU's and while it waits (None: there is no host)."""


def evaluate_kernel(model: TimingModel, power: PowerModel, kernel: Kernel, gpu: Gpu) -> Launch:
    """Return what one kernel does on one GPU (scalars)."""
    timing = model(kernel, gpu)
    return timing, power.uncapped(power.counts(kernel, timing, gpu), gpu)


def evaluate_recorded(model: TimingModel, power: PowerModel, kernel: RecordedKernel, gpus: Gpu) -> Launch:
    """Return what a recorded kernel does on GPUs, scalars or arrays (designs,), which its model batches itself."""
    timing = on_trace(model, kernel, gpus)
    return timing, power.uncapped(power.recorded_counts(kernel, timing, gpus), gpus)


def times(model: TimingModel, kernels: Kernel, gpus: Gpu) -> Array:
    """Return the time [ns] of kernels (kernels,) on GPUs (designs,), arrays (designs, kernels); INFEASIBLE where one
    cannot run."""
    return over_arrays(model.nanoseconds, kernels, with_kernel_axis(gpus))


def timings(model: TimingModel, kernels: Kernel, gpus: Gpu) -> Timing:
    """Return the timing of kernels on GPUs, arrays that broadcast together."""
    return over_arrays(model, kernels, gpus)


def launches(model: TimingModel, power: PowerModel, kernels: Kernel, gpus: Gpu) -> Launch:
    """Return what kernels (kernels,), or (designs, kernels), do on one GPU or on GPUs (designs,)."""
    return over_arrays(partial(evaluate_kernel, model, power), kernels, with_kernel_axis(gpus))


def activities(kernels: Kernel, timing: Timing, gpus: Gpu) -> Activity:
    """Return what launches make GPUs do, arrays that broadcast together."""
    return over_arrays(activity, kernels, timing, gpus)


def unlimited_power(power: BoardPower, counts: Activity, gpus: Gpu) -> Power:
    """Return what launches draw if nothing limits them, arrays that broadcast together."""
    return over_arrays(power.uncapped, counts, gpus)


def settle_alone(
    power: BoardPower, counts: Activity, timing: Timing, gpus: Gpu, limit: Array | None = None
) -> OperatingPoint:
    """Return where boards settle that repeat one launch each, arrays that broadcast together.

    ``limit``: watts that the board stays within, None for its own.
    """
    return over_arrays(power.sustained, counts, timing, gpus, power.limit(gpus) if limit is None else limit)


def phase_run(workload: Workload, phase: str, count: int) -> PhaseRun:
    """Return what runs in a phase, its operators filled up to ``count`` by such as never run; in NumPy."""
    repeats, host = workload.phase_repeats(phase), workload.host(phase)
    waits = (
        None
        if host is None
        else (np.asarray(host.overlapped_us, float_type()), np.asarray(host.waits_us, float_type()))
    )
    return np.pad(repeats, (0, count - len(repeats))).astype(float_type()), waits


def settle_phase(
    power: PowerModel, limit: bool, timing: Timing, watts: Power, run: PhaseRun, gpus: Gpu
) -> LaunchSequence:
    """Return a phase where the board settles: launches (..., operators) one after another, each as often as it runs,
    and the time that the GPU waits for a serving engine's host.

    ``limit``: whether the power limit holds; fields of ``gpus`` are of shape (...) or scalars.
    """
    repeats, host = run
    return in_sequence(PowerChoice(power, limit), timing, watts, repeats, gpus, host and Host(*host))


def settle_sums(power: PowerModel, limit: bool, run: PhaseRun, sums: Sequence[Array], gpus: Gpu) -> SequenceTotals:
    """Return the same of launches whose terms (:func:`dse.power.sequence.launch_terms`) add up to ``sums``: what
    metrics need of it."""
    return of_sums(PowerChoice(power, limit), sums, gpus, run[1] and Host(*run[1])).totals


def settle_launches(
    power: PowerModel, limit: bool, timing: Timing, watts: Power, run: PhaseRun, gpus: Gpu
) -> tuple[LaunchSequence, Timing]:
    """Return :func:`settle_phase`, and the launches at the clock that the power limit leaves to the phase."""
    phase = settle_phase(power, limit, timing, watts, run, gpus)
    clock = jnp.broadcast_to(phase.clock[..., None], jnp.shape(timing.clock_ghz))
    return phase, at_clock(timing, clock, shadow_between(at_paces(timing)))


def phase_metrics(workload: Workload, phases: Mapping[str, LaunchSequence | SequenceTotals]) -> dict[str, Any]:
    """Return the metrics that follow from time and power of a workload's phases, by name."""
    milliseconds = {name: phase.nanoseconds / MEGA for name, phase in phases.items()}
    energy = {name: (phase.joules, phase.clock) for name, phase in phases.items()}
    return time_metrics(workload, milliseconds) | energy_metrics(workload, milliseconds, energy)
