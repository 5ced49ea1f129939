"""Board power of kernels that run one after another on one GPU: energy over time, where the board settles."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.base.units import NANO
from dse.evaluate.shared_programs import timings_of_rows
from dse.evaluate.steps import activities, settle_phase, unlimited_power
from dse.hardware.gpu import Gpu
from dse.measured.network_runs.rows import TIMED_TOGETHER
from dse.measured.network_runs.steps import Step
from dse.measured.timed_rows import TimedRows
from dse.power.activity import with_still_operands
from dse.power.board import BoardPower
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel

NO_WAITS = (0.0, 0.0)
"""Waits for a host that there is none of [us]."""

NONE_STILL = (0.0, 0.0)
"""Shares of attention's and of other products whose operands do not change, where all do [1]."""


@dataclass(frozen=True)
class StepBoard:
    """The board under the steps of one GPU: ``operators`` whose places the steps name, ``places`` of the fastest kernel
    of each, what times them and what they draw."""

    operators: TimedRows
    places: np.ndarray
    timing: TimingModel
    power: BoardPower
    gpu: Gpu

    def energy(
        self,
        step: Step,
        stretch: float,
        waits_us: tuple[float, float] = NO_WAITS,
        still: tuple[float, float] = NONE_STILL,
    ) -> tuple[float, float]:
        """Return energy [J] and time [s] of one pass that takes ``stretch`` times as long as its kernels are predicted.

        ``waits_us``: a host's times beside the GPU's and while it waits (:class:`dse.workload.serving_engine.Host`).
        ``still``: shares of attention's and of other products whose operands do not change
        (:func:`dse.power.activity.with_still_operands`).
        """
        fill = -len(step.places) % TIMED_TOGETHER
        used, repeats = np.pad(step.places, (0, fill)), np.pad(step.repeats, (0, fill))
        kernels = jax.tree.map(lambda x: x[self.places[used]], self.operators.kernels)
        timing = timings_of_rows(self.timing, kernels, jax.tree.map(lambda x: x[used], self.operators.gpus))
        waits = (jnp.asarray(stretch * waits_us[0]), jnp.asarray(stretch * waits_us[1]))
        shares = (jnp.asarray(still[0]), jnp.asarray(still[1]))
        run = (jnp.asarray(repeats, float), waits)
        found = _settled(self.power, kernels, timing, run, self.gpu, jnp.asarray(stretch), shares)
        return float(found[0]), float(found[1]) * NANO


@quick_filter_jit
def _settled(
    power: BoardPower,
    kernels: Kernel,
    timing: Timing,
    run: tuple[Array, tuple[Array, Array]],
    gpu: Gpu,
    stretch: Array,
    still: tuple[Array, Array],
) -> tuple[Array, Array]:
    """Energy [J] and time [ns] of launches (launches,) one after another where the board settles; ``run``: repeats of
    each, and the host's waits."""
    longer = timing.stretched(stretch)
    watts = unlimited_power(power, with_still_operands(activities(kernels, longer, gpu), *still), gpu)
    phase = settle_phase(power, True, longer, watts, run, gpu)
    return phase.joules, phase.nanoseconds
