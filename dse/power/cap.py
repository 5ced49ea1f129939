"""Operation at the power limit: the clock falls, voltage with it, until the board draws what it may.

No paper of ours prices this; the form is that of DVFS (P_dynamic ~ f V^2, V linear in f above a floor). A launch slows
down by the part of its time that follows the clock of the SMs: bytes from DRAM and messages keep their pace.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.numerics import safe_div
from dse.power.power import Power
from dse.timing.timing import Timing

SLOWEST = 0.15
"""Lowest clock relative to the requested one (210 of 1410 MHz, the lowest an A100 can be locked to)."""

STEPS = 5
"""Newton's steps: watts over clock is nearly convex, so that they close in from above."""

OFF_CLOCK = ("dram_bandwidth", "interconnect")
"""Causes whose time does not follow the clock of the SMs."""

ON_RAIL = ("register_file", "instruction", "int32", "fp32", "fp64", "sfu", "tensor", "texture", "shared_memory", "l1",
           "constant_cache", "l2", "noc")  # fmt: skip
"""Components that pay by the operation, at the core's voltage."""

CLOCKED = ("pipeline", "idle_sm")
"""Components that pay by the cycle, at the core's voltage."""

OFF_RAIL = ("dram", "interconnect")
"""Components that pay by the operation, at a voltage of their own."""


class Draw(NamedTuple):
    """How core voltage follows the clock: linear through (nominal clock, 1), not below a floor.

    ``requested``: clock of the launch relative to the node's nominal clock [1]; ``slope`` of relative voltage over
    relative clock [1]; ``floor``: lowest relative voltage [1].
    """

    requested: Array
    slope: Array
    floor: Array

    def voltage(self, clock: ArrayLike) -> Array:
        """Return the voltage relative to nominal at ``clock``, relative to the requested one."""
        return jnp.maximum(1.0 + self.slope * (self.requested * clock - 1.0), self.floor)


class Sustained(NamedTuple):
    """Where the board settles: ``clock`` relative to the requested one, and timing and power there."""

    clock: Array
    timing: Timing
    power: Power


def sustain(draw: Draw, uncapped: Power, timing: Timing, limit: Array, width: Array) -> Sustained:
    """Return the operating point of a launch whose board draws ``uncapped`` at the requested clock (scalars).

    The power is the lesser of that and ``limit`` [W], rounded within ``width`` of the limit; the clock is the one that
    gives this power. At the lowest clock a board may draw more than the limit.
    """
    fixed, static, clocked, on_rail, off_rail = _sums(uncapped)
    follows = clock_share(timing)

    def watts(clock: Array) -> Array:
        volts = draw.voltage(clock) / draw.voltage(1.0)
        rate = clock / (follows + (1 - follows) * clock)
        return fixed + static * volts + clocked * clock * volts**2 + (on_rail * volts**2 + off_rail) * rate

    target = uncapped.watts - _excess(uncapped.watts - limit, width * limit)
    clock = _clock(watts, target)
    return Sustained(clock, at_clock(timing, clock), _scaled(uncapped, draw, clock, follows))


def clock_share(timing: Timing) -> Array:
    """Return the share of a launch's time that follows the clock of the SMs."""
    apart = sum((getattr(timing, cause) for cause in OFF_CLOCK), jnp.zeros_like(timing.selected))
    return jnp.clip(1.0 - safe_div(apart, timing.cycles), 0.0, 1.0)


def at_clock(timing: Timing, clock: Array) -> Timing:
    """Return the stack at ``clock`` relative to the stack's own: what follows the clock keeps its cycles."""
    others = {cause: getattr(timing, cause) * clock for cause in OFF_CLOCK}
    return type(timing)(**(_fields(timing) | others | {"clock_ghz": timing.clock_ghz * clock}))


def _excess(over: Array, bend: Array) -> Array:
    """max(over, 0), rounded by a parabola within ``bend`` of zero: exact outside, without exponentials."""
    within = jnp.clip(over + bend, 0.0, 2 * bend)
    return within**2 / (4 * bend) + jnp.maximum(over - bend, 0.0)


def _clock(watts: Callable[[Array], Array], target: Array) -> Array:
    """The clock between SLOWEST and 1 at which ``watts``, growing in it, is ``target``.

    Newton's steps from above; the last carries the gradient: d clock = (d target - d watts) / watts'.
    """

    def step(clock: Array) -> Array:
        slope = jax.lax.stop_gradient(jax.jvp(watts, (clock,), (jnp.ones_like(clock),))[1])
        return jnp.clip(clock + safe_div(target - watts(clock), slope), SLOWEST, 1.0)

    # A loop, since the compiler would unroll the steps into one expression and compute what they share again in each.
    near = jax.lax.fori_loop(0, STEPS, lambda _, clock: jax.lax.stop_gradient(step(clock)), jnp.ones_like(target))
    return step(jax.lax.stop_gradient(near))


def _sums(power: Power) -> tuple[Array, Array, Array, Array, Array]:
    """Watts that do not scale, that follow voltage, cycles, operations on the rail, operations off it."""
    groups = [sum((getattr(power, name) for name in names), jnp.zeros(())) for names in (CLOCKED, ON_RAIL, OFF_RAIL)]
    return power.constant, power.static, groups[0], groups[1], groups[2]


def _scaled(power: Power, draw: Draw, clock: Array, follows: Array) -> Power:
    """The components at ``clock`` relative to the requested one."""
    volts = draw.voltage(clock) / draw.voltage(1.0)
    rate = clock / (follows + (1 - follows) * clock)
    factors = {"static": volts}
    factors |= dict.fromkeys(CLOCKED, clock * volts**2)
    factors |= dict.fromkeys(ON_RAIL, rate * volts**2) | dict.fromkeys(OFF_RAIL, rate)
    return Power(**{name: watts * factors.get(name, 1.0) for name, watts in power.breakdown().items()})


def _fields(timing: Timing) -> dict[str, Array]:
    return {name: getattr(timing, name) for name in timing.__dataclass_fields__}
