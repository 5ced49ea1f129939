"""A workload's phases on designs: its kernels one after another where the board settles, and the metrics they make."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.units import GIGA, MILLI, NANO
from dse.hardware.gpu import Gpu
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.power.sequence import in_sequence
from dse.space.metrics import energy_metrics, time_metrics
from dse.timing.timing import Timing, causes_of
from dse.workload.serving_engine import Host
from dse.workload.workload import Workload


class Chores(NamedTuple):
    """What of a workload is run in a phase: how often each operator (operators,), and the times [us] of a serving
    engine's host, beside the GPU and while it waits (None: there is none)."""

    repeats: Array
    engine: tuple[Array, Array] | None

    @property
    def host(self) -> Host | None:
        """The engine's host."""
        return None if self.engine is None else Host(*self.engine)  # pyright: ignore[reportArgumentType]


class PhaseResult(NamedTuple):
    """One phase of a workload on a batch of designs, each array of shape (designs,).

    ``stack`` [ms] by cause at the clock that the power limit leaves; ``joules`` [J] of one board; ``clock``: share of
    the requested clock; ``dram_bytes`` [B].
    """

    stack: dict[str, Array]
    joules: Array
    clock: Array
    dram_bytes: Array

    @property
    def time_ms(self) -> Array:
        """Time of one run of the phase [ms]."""
        total = jnp.zeros_like(self.dram_bytes)
        for value in self.stack.values():
            total = total + value
        return total


def chores(workload: Workload, phase: str, count: int) -> Chores:
    """Return what is run in a phase, its operators filled up to ``count`` by such as never run."""
    repeats, host = workload.phase_repeats(phase), workload.host(phase)
    times = None if host is None else (jnp.asarray(host.beside_us, float), jnp.asarray(host.waits_us, float))
    return Chores(jnp.asarray(np.pad(repeats, (0, count - len(repeats))), float), times)


def phase_result(choice: PowerChoice, run: Chores, timing: Timing, power: Power, gpus: Gpu) -> PhaseResult:
    """Return one phase of operators (designs, operators): one after another, each as often as it runs, and the time
    that the GPU waits for a serving engine's host."""
    settled = in_sequence(choice, timing, power, run.repeats, gpus, run.host)
    stack = {cause: value * (NANO / MILLI) for cause, value in settled.stack.items()}
    return PhaseResult(stack, settled.joules, settled.clock, jnp.sum(timing.dram_bytes * run.repeats, axis=1))


def workload_columns(workload: Workload, phases: Mapping[str, PhaseResult]) -> dict[str, Array]:
    """Return the metrics and the stack [ms] of a workload on a batch of designs, by column name."""
    runs = {phase.name: phase.runs for phase in workload.phases}
    times = {name: phase.time_ms for name, phase in phases.items()}
    columns = time_metrics(workload, times)
    columns |= energy_metrics(workload, times, {name: (phase.joules, phase.clock) for name, phase in phases.items()})
    columns["dram_gb"] = sum(phases[name].dram_bytes * count for name, count in runs.items()) / GIGA
    columns["memory_gb"] = jnp.full_like(columns["time_ms"], workload.memory.total / GIGA)
    for cause in causes_of(workload):
        parts = [phases[name].stack[cause] * count for name, count in runs.items() if cause in phases[name].stack]
        columns[f"{cause}_ms"] = sum(parts)
    return {f"{workload.name}.{name}": value for name, value in columns.items()}
