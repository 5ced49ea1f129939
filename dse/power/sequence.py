"""Kernels that run one after another: their mean power, and the clock at which the power limit holds for the mean.

A board's limit acts on milliseconds, not on a kernel of microseconds: what a memory-bound kernel leaves, its neighbours
may draw. So the limit is held by the mean of a sequence, and all of its kernels slow down together. Where a serving
engine runs it, the GPU waits for the host, too; the kernels alone hold the limit, since nothing published says how far
it looks back.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.numerics import sums
from dse.base.units import KILO, NANO
from dse.hardware.gpu import Gpu
from dse.power.models import PowerChoice
from dse.power.power import COMPONENTS, Power
from dse.power.power_limit import PACES, at_paces, shadow_between, sustain
from dse.timing.timing import CAUSES, HOST, Timing
from dse.workload.serving_engine import Host


class LaunchSequence(NamedTuple):
    """A sequence where the board settles; arrays of one shape.

    ``stack`` [ns] by cause; ``power``: mean watts by component; ``clock``: share of the requested clock that is left;
    ``dram_bytes`` [B] pass between DRAM and L2.
    """

    stack: dict[str, Array]
    power: Power
    clock: Array
    dram_bytes: Array

    @property
    def nanoseconds(self) -> Array:
        """Time of the sequence [ns]."""
        first, *rest = self.stack.values()
        return sum(rest, first)

    @property
    def joules(self) -> Array:
        """Energy of the board [J]."""
        return self.power.watts * self.nanoseconds * NANO

    @property
    def totals(self) -> "SequenceTotals":
        """What metrics need of it."""
        return SequenceTotals(self.stack, self.nanoseconds, self.joules, self.clock, self.dram_bytes)


class SequenceTotals(NamedTuple):
    """What metrics need of a :class:`LaunchSequence`: its fields and properties of these names."""

    stack: dict[str, Array]
    nanoseconds: Array
    joules: Array
    clock: Array
    dram_bytes: Array


def in_sequence(
    choice: PowerChoice,
    timing: Timing,
    power: Power,
    repeats: Array | np.ndarray,
    gpu: Gpu,
    host: Host | None = None,
) -> LaunchSequence:
    """Return what launches do together that each draw ``power`` if nothing limits them.

    ``timing`` and ``power`` hold arrays (..., launches), ``repeats`` (launches,) says how often each runs; fields of
    ``gpu`` are of shape (...) or scalars. ``host``: what the GPU waits for beside (None: nothing).
    """
    *terms, dram_bytes = launch_terms(timing, power, repeats)
    total = [*sums(tuple(jnp.broadcast_arrays(*terms))), jnp.sum(dram_bytes, axis=-1)]
    return of_sums(choice, total, gpu, host)


def launch_terms(timing: Timing, power: Power, repeats: Array | np.ndarray) -> list[Any]:
    """Return what a sequence adds up of a launch that runs so often: all that :func:`of_sums` needs of it."""
    times, weights = repeats * timing.nanoseconds, repeats / timing.clock_ghz
    return [
        times,
        times * timing.clock_ghz,
        *(cycles * weights for cycles in at_paces(timing)),
        *(w * times for w in power.breakdown().values()),
        *(c * weights for c in timing.stack().values()),
        timing.dram_bytes * repeats,
    ]


def of_sums(choice: PowerChoice, terms: Sequence[Array], gpu: Gpu, host: Host | None = None) -> LaunchSequence:
    """Return the sequence of launches whose :func:`launch_terms` add up to ``terms``; see :func:`in_sequence`."""
    total, clocked, *rest = terms
    longer, rest = rest[: len(PACES)], rest[len(PACES) :]
    total = jnp.maximum(total, 1.0)
    mean = Power(**{name: value / total for name, value in zip(COMPONENTS, rest, strict=False)})
    *cycles, dram_bytes = rest[len(COMPONENTS) :]
    stack = dict(zip(CAUSES, cycles, strict=True))
    clock = clocked / total
    one, nothing = jnp.ones_like(total), jnp.zeros_like(total)
    together = Timing(**stack, clock_ghz=one, feasible=one, dram_bytes=one, hidden=nothing)  # nanoseconds: at 1 GHz
    run, model = LaunchSequence(stack, mean, one, dram_bytes), choice.model
    if choice.limit:
        shadow = shadow_between(longer)
        point = sustain(model.draw(clock, gpu), mean, together, model.limit(gpu), model.cap_width, shadow)
        slowed = {cause: cycles / point.timing.clock_ghz for cause, cycles in point.timing.stack().items()}
        run = run._replace(stack=slowed, power=point.power, clock=point.clock)
    return run if host is None else waiting(run, host, model.between_kernels(clock * run.clock, gpu))


def waiting(run: LaunchSequence, host: Host, between: Power) -> LaunchSequence:
    """Return ``run`` with the time that its GPU waits for the ``host`` (:meth:`Host.idle_us`), drawing what it does
    ``between`` kernels."""
    busy = run.nanoseconds
    wait = KILO * host.idle_us(busy / KILO)
    share = wait / jnp.maximum(busy + wait, 1.0)
    watts = {
        name: at_work + share * (getattr(between, name) - at_work) for name, at_work in run.power.breakdown().items()
    }
    return run._replace(stack=run.stack | {HOST: wait}, power=Power(**watts))
