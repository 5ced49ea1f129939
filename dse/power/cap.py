"""Operation at the power limit: the clock falls, voltage with it, until the board draws what it may.

No paper of ours prices this; the form is that of DVFS (P_dynamic ~ f V^2, V linear in f above a floor). Bytes from
DRAM and messages keep their pace. What the SMs do takes longer at a lower clock: in the shadow of DRAM it costs nothing
until it has grown as long as the bytes, and from there on every cycle shows:

    T(s) = (C - H) / s + N + max(H / s, H + D),

with the clock's share s, the stack's cycles C that follow it, of them H in the shadow of D cycles of DRAM bandwidth,
and N of messages.
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

NO_LOWER = 1.001 * SLOWEST
"""At this share of the clock, or below, nothing is left to lower: the board draws more than its limit."""

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


class Paces(NamedTuple):
    """How long a launch takes at a share of its clock, relative to the requested one, on one side of :attr:`crossing`.

    ``follows``: share of the time that follows the clock; ``gain``: what it would gain at the requested clock on this
    side of the crossing [1]; ``crossing``: share of the clock at which the SMs become as slow as the DRAM.
    """

    follows: Array
    gain: Array
    crossing: Array

    def rate(self, clock: Array) -> Array:
        """Return the launches a second at ``clock``, relative to those at the requested one."""
        return self.gain * clock / (self.follows + (1 - self.follows) * clock)


class Sustained(NamedTuple):
    """Where the board settles: ``clock`` relative to the requested one, and timing and power there."""

    clock: Array
    timing: Timing
    power: Power


def sustain(
    draw: Draw, uncapped: Power, timing: Timing, limit: Array, width: Array, hidden: Array | None = None
) -> Sustained:
    """Return the operating point of a launch whose board draws ``uncapped`` at the requested clock (scalars).

    The power is the lesser of that and ``limit`` [W], rounded within ``width`` of the limit; the clock is the one that
    gives this power. At the lowest clock a board may draw more than the limit. ``hidden`` [cycle]: H of several
    launches together, the sum of each one's :func:`in_shadow` (None: of this launch).
    """
    fixed, static, clocked, on_rail, off_rail = _sums(uncapped)
    hidden = in_shadow(timing) if hidden is None else hidden

    def watts(clock: Array, pace: Paces) -> Array:
        volts = draw.voltage(clock) / draw.voltage(1.0)
        return fixed + static * volts + clocked * clock * volts**2 + (on_rail * volts**2 + off_rail) * pace.rate(clock)

    target = uncapped.watts - _excess(uncapped.watts - limit, width * limit)
    above, below = paces(timing, hidden)
    under = target < watts(above.crossing, above)
    pace = jax.tree.map(lambda one, other: jnp.where(under, one, other), below, above)
    clock = _clock(lambda clock: watts(clock, pace), target, jnp.where(under, pace.crossing, 1.0))
    return Sustained(clock, at_clock(timing, clock, hidden), _scaled(uncapped, draw, clock, pace))


def in_shadow(timing: Timing) -> Array:
    """Return the cycles of a launch that DRAM bandwidth hides more of (H): all that follow the clock but the launch's
    own, where its bytes take longer than they."""
    return jnp.where(timing.dram_bandwidth > 0, timing.cycles - _off_clock(timing) - timing.launch, 0.0)


def paces(timing: Timing, hidden: Array) -> tuple[Paces, Paces]:
    """Return the paces of a launch above its crossing, where DRAM decides, and below, where the SMs do."""
    total, dram = timing.cycles, timing.dram_bandwidth
    off, without = _off_clock(timing), jnp.maximum(timing.cycles - dram, 1e-3 * timing.cycles)
    crossing = jnp.where(dram > 0, safe_div(hidden, hidden + dram), 1.0)
    above = jnp.clip(1.0 - safe_div(off + hidden, total), 0.0, 1.0)
    below = jnp.clip(1.0 - safe_div(off - dram, without), 0.0, 1.0)
    return Paces(above, jnp.ones_like(total), crossing), Paces(below, safe_div(total, without), crossing)


def at_clock(timing: Timing, clock: Array, hidden: Array) -> Timing:
    """Return the stack at ``clock`` relative to the stack's own, ``hidden`` cycles in the shadow of DRAM bandwidth."""
    others = {
        "dram_bandwidth": still_longer(timing.dram_bandwidth, hidden, clock),
        "interconnect": timing.interconnect * clock,
    }
    return type(timing)(**(_fields(timing) | others | {"clock_ghz": timing.clock_ghz * clock}))


def still_longer(dram: Array, hidden: Array, clock: Array) -> Array:
    """Return the cycles, of ``clock`` relative to the stack's own, by which the bytes of DRAM outlast the SMs' work:
    ``dram`` cycles of the stack, with ``hidden`` ones in their shadow."""
    return jnp.maximum(dram * clock - hidden * (1.0 - clock), 0.0)


def _off_clock(timing: Timing) -> Array:
    """Cycles of the causes that do not follow the clock."""
    return sum((getattr(timing, cause) for cause in OFF_CLOCK), jnp.zeros_like(timing.selected))


def _excess(over: Array, bend: Array) -> Array:
    """max(over, 0), rounded by a parabola within ``bend`` of zero: exact outside, without exponentials."""
    within = jnp.clip(over + bend, 0.0, 2 * bend)
    return within**2 / (4 * bend) + jnp.maximum(over - bend, 0.0)


def _clock(watts: Callable[[Array], Array], target: Array, start: Array) -> Array:
    """The clock between SLOWEST and 1 at which ``watts``, growing in it, is ``target``; ``start``: not below it.

    Newton's steps from above; the last carries the gradient: d clock = (d target - d watts) / watts'.
    """

    def step(clock: Array) -> Array:
        slope = jax.lax.stop_gradient(jax.jvp(watts, (clock,), (jnp.ones_like(clock),))[1])
        return jnp.clip(clock + safe_div(target - watts(clock), slope), SLOWEST, 1.0)

    # A loop, since the compiler would unroll the steps into one expression and compute what they share again in each.
    near = jax.lax.fori_loop(0, STEPS, lambda _, clock: jax.lax.stop_gradient(step(clock)), jnp.maximum(start, SLOWEST))
    return step(jax.lax.stop_gradient(near))


def _sums(power: Power) -> tuple[Array, Array, Array, Array, Array]:
    """Watts that do not scale, that follow voltage, cycles, operations on the rail, operations off it."""
    groups = [sum((getattr(power, name) for name in names), jnp.zeros(())) for names in (CLOCKED, ON_RAIL, OFF_RAIL)]
    return power.constant, power.static, groups[0], groups[1], groups[2]


def _scaled(power: Power, draw: Draw, clock: Array, pace: Paces) -> Power:
    """The components at ``clock`` relative to the requested one."""
    volts = draw.voltage(clock) / draw.voltage(1.0)
    rate = pace.rate(clock)
    factors = {"static": volts}
    factors |= dict.fromkeys(CLOCKED, clock * volts**2)
    factors |= dict.fromkeys(ON_RAIL, rate * volts**2) | dict.fromkeys(OFF_RAIL, rate)
    return Power(**{name: watts * factors.get(name, 1.0) for name, watts in power.breakdown().items()})


def _fields(timing: Timing) -> dict[str, Array]:
    return {name: getattr(timing, name) for name in timing.__dataclass_fields__}
