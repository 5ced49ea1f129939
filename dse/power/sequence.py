"""Kernels that run one after another: their mean power, and the clock at which the power limit holds for the mean.

A board's limit acts on milliseconds, not on a kernel of microseconds: what a memory-bound kernel leaves, its neighbours
may draw. So the limit is held by the mean of a sequence, and all of its kernels slow down together.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.numerics import sums
from dse.power.cap import sustain
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.timing.timing import Timing
from dse.units import NANO


class Sequence(NamedTuple):
    """A sequence where the board settles; arrays of one shape.

    ``stack`` [ns] by cause; ``power``: mean watts by component; ``clock``: share of the requested clock that is held.
    """

    stack: dict[str, Array]
    power: Power
    clock: Array

    @property
    def nanoseconds(self) -> Array:
        """Time of the sequence [ns]."""
        return sum(self.stack.values(), jnp.zeros_like(self.clock))

    @property
    def joules(self) -> Array:
        """Energy of the board [J]."""
        return self.power.watts * self.nanoseconds * NANO


def in_sequence(choice: PowerChoice, timing: Timing, power: Power, repeats: Array, gpu: Gpu) -> Sequence:
    """Return what launches do together that each draw ``power`` if nothing limits them.

    ``timing`` and ``power`` hold arrays (..., launches), ``repeats`` (launches,) says how often each runs; fields of
    ``gpu`` are of shape (...) or scalars.
    """
    times, weights = repeats * timing.nanoseconds, repeats / timing.clock_ghz
    watts, cycles = power.breakdown(), timing.stack()
    terms = [
        times,
        times * timing.clock_ghz,
        *(w * times for w in watts.values()),
        *(c * weights for c in cycles.values()),
    ]
    total, clocked, *rest = sums(tuple(jnp.broadcast_arrays(*terms)))
    total = jnp.maximum(total, 1.0)
    mean = Power(**{name: value / total for name, value in zip(watts, rest, strict=False)})
    stack = dict(zip(cycles, rest[len(watts) :], strict=True))
    clock = clocked / total
    one = jnp.ones_like(total)
    together = Timing(**stack, clock_ghz=one, feasible=one, dram_bytes=one)  # nanoseconds: cycles at 1 GHz
    if not choice.limit:
        return Sequence(stack, mean, one)
    model = choice.model
    held = sustain(model.draw(clock, gpu), mean, together, model.limit(gpu), model.cap_width)
    slowed = {cause: cycles / held.timing.clock_ghz for cause, cycles in held.timing.stack().items()}
    return Sequence(slowed, held.power, held.clock)
