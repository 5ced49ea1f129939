"""Operation at the power limit: the clock falls, voltage with it, until the board draws what it may.

No paper of ours prices this; the form is that of DVFS (P_dynamic ~ f V^2, V linear in f above a floor), and leakage
follows V^2, since its current grows with the voltage too. Bytes from
DRAM and messages keep their pace. What the SMs do takes longer at a lower clock: in the shadow of DRAM it costs nothing
until it has grown as long as the bytes, and from there on every cycle shows:

    T(s) = (C - V) / s + N + max(H / s, V + D - E) + E,

with the clock's share s, the stack's cycles C that follow it, N of messages and D of DRAM bandwidth, in whose shadow
the SMs work H cycles; V of them the stack shows. E of D come on top of both, where the two overlap imperfectly.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.power.power import Power
from dse.timing.timing import Timing

SLOWEST = constant("lowest_clock_share")
"""Lowest clock relative to the requested one (210 of 1410 MHz, the lowest an A100 can be locked to)."""

NO_LOWER = 1.001 * SLOWEST
"""At this share of the clock, or below, nothing is left to lower: the board draws more than its limit."""

PACES = (SLOWEST, 0.2, 0.26, 0.33, 0.41, 0.5, 0.58, 0.66, 0.74, 0.82, 0.9, 0.96, 1.0)
"""Shares of the clock at which launches that run together are added up; between two of them what each one hides goes
in a line, which makes a launch whose work comes out of the shadow there 2 % longer at most."""

STEPS = 5
"""Newton's steps: watts over clock is nearly convex, so that they close in from above."""

OFF_CLOCK = ("dram_bandwidth", "interconnect")
"""Causes whose time does not follow the clock of the SMs."""

ON_RAIL = ("register_file", "instruction", "int32", "fp32", "fp64", "sfu", "tensor", "texture", "shared_memory", "l1",
           "constant_cache", "l2", "noc")  # fmt: skip
"""Components that pay by the operation, at the core's voltage."""

CLOCKED = ("pipeline", "idle_sm", "idle_units")
"""Components that pay by the cycle, at the core's voltage."""

OFF_RAIL = ("dram", "interconnect")
"""Components that pay by the operation, at a voltage of their own."""


class VoltageLine(NamedTuple):
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


class Shadow(NamedTuple):
    """By how many cycles the bytes of DRAM outlast the SMs' work at a share of the clock: the highest of some lines.

    ``asked`` and ``slope``, one a line: its value at the requested clock and its slope [cycle of the lowered clock],
    from that of the lowest clocks on; ``knots``, one fewer: shares of the clock at which the next one takes over.
    """

    asked: Sequence[Array]
    slope: Sequence[Array]
    knots: Sequence[ArrayLike]

    def longer(self, clock: Array) -> Array:
        """Return the cycles at ``clock``."""
        lines = [asked - slope * (1.0 - clock) for asked, slope in zip(self.asked, self.slope, strict=True)]
        return reduce(jnp.maximum, lines)


class Pace(NamedTuple):
    """How often a launch runs at a share of its clock: ``total`` cycles at the requested one, at a lower one ``work``
    and ``fixed`` times the clock [cycle of the lowered clock]."""

    total: Array
    work: Array
    fixed: Array

    def rate(self, clock: ArrayLike) -> Array:
        """Return the launches a second at ``clock``, relative to those at the requested one."""
        return safe_div(self.total * clock, self.work + self.fixed * clock)


class OperatingPoint(NamedTuple):
    """Where the board settles: ``clock`` relative to the requested one, and timing and power there."""

    clock: Array
    timing: Timing
    power: Power


def sustain(
    draw: VoltageLine, uncapped: Power, timing: Timing, limit: Array, width: Array, shadow: Shadow | None = None
) -> OperatingPoint:
    """Return the operating point of a launch whose board draws ``uncapped`` at the requested clock (scalars).

    The power is the lesser of that and ``limit`` [W], rounded within ``width`` of the limit; the clock is the one that
    gives this power. At the lowest clock a board may draw more than the limit. ``shadow``: of several launches whose
    sums ``timing`` holds (None: of this launch).
    """
    shadow = shadow_of(timing) if shadow is None else shadow
    parts, target = _sums(uncapped), limited(uncapped.watts, limit, width)
    mine = jnp.zeros_like(target)  # the line that decides, counted from that of the lowest clocks
    for asked, slope, knot in zip(shadow.asked, shadow.slope, shadow.knots, strict=False):
        over = target >= _watts(draw, parts, knot, _pace(timing, asked, slope))
        mine = mine + jnp.where(over, 1.0, 0.0)

    def of_mine(values: Sequence[ArrayLike]) -> Array:
        found = jnp.asarray(values[0])
        for number, value in enumerate(values[1:], 1):
            found = jnp.where(mine >= number, value, found)
        return found

    pace = _pace(timing, of_mine(shadow.asked), of_mine(shadow.slope))
    highest = of_mine([*shadow.knots, 1.0])
    clock = _clock(lambda clock: _watts(draw, parts, clock, pace), target, highest)
    return OperatingPoint(clock, at_clock(timing, clock, shadow), _scaled(uncapped, draw, clock, pace))


def limited(watts: Array, limit: Array, width: Array) -> Array:
    """Return the watts that a board draws within its limit of those without [W], rounded within ``width`` of it."""
    return watts - _excess(watts - limit, width * limit)


def _watts(draw: VoltageLine, parts: tuple[Array, ...], clock: ArrayLike, pace: Pace) -> Array:
    """Watts at ``clock`` of what :func:`_sums` returns."""
    fixed, static, clocked, on_rail, off_rail = parts
    volts = draw.voltage(clock) / draw.voltage(1.0)
    rate = pace.rate(clock)
    return fixed + off_rail * rate + (static + clocked * clock + on_rail * rate) * volts**2


def shadow_of(timing: Timing) -> Shadow:
    """Return the shadow of one launch: all of its work but starting it grows in it, as far as its bytes take longer."""
    dram, exposed, (seen, more) = timing.dram_bandwidth, _exposed(timing), in_shadow(timing)
    bytes_alone = seen + dram - exposed
    crossing = jnp.where(bytes_alone > 0, jnp.minimum(safe_div(seen + more, bytes_alone), 1.0), 1.0)
    return Shadow([more + exposed, dram], [exposed, dram + seen], [crossing])


def shadow_between(longer: Sequence[Array]) -> Shadow:
    """Return the shadow that takes the values ``longer`` [cycle of the lowered clock] at PACES, linear between them."""
    lines = list(pairwise(zip(PACES, longer, strict=True)))
    slopes = [(above - below) / (high - low) for (low, below), (high, above) in lines]
    asked = [above + slope * (1.0 - high) for slope, (_, (high, above)) in zip(slopes, lines, strict=True)]
    return Shadow(asked, slopes, PACES[1:-1])


def at_paces(timing: Timing) -> list[Array]:
    """Return by how many cycles the bytes of DRAM outlast a launch's work at each of PACES."""
    dram, exposed, (seen, more) = timing.dram_bandwidth, _exposed(timing), in_shadow(timing)
    return [jnp.maximum(dram * pace - seen * (1.0 - pace), more + exposed * pace) for pace in PACES]


def in_shadow(timing: Timing) -> tuple[Array, Array]:
    """Return the cycles of the SMs' work in the shadow of DRAM's bytes (H) in two parts: those that the stack shows,
    all that follow the clock but starting the launch, and those that it books under the bandwidth."""
    seen = jnp.where(timing.dram_bandwidth > 0, timing.cycles - _off_clock(timing) - timing.launch, 0.0)
    return seen, jnp.clip(timing.hidden - seen, 0.0, timing.dram_bandwidth - _exposed(timing))


def _exposed(timing: Timing) -> Array:
    return jnp.asarray(timing.exposed)


def at_clock(timing: Timing, clock: Array, shadow: Shadow) -> Timing:
    """Return the stack at ``clock`` relative to the stack's own."""
    others = {"dram_bandwidth": shadow.longer(clock), "interconnect": timing.interconnect * clock}
    others |= {"exposed": _exposed(timing) * clock}
    return type(timing)(**(_fields(timing) | others | {"clock_ghz": timing.clock_ghz * clock}))


def _pace(timing: Timing, asked: Array, slope: Array) -> Pace:
    """The pace where the bytes of DRAM outlast the work by a line of :class:`Shadow`."""
    return Pace(timing.cycles, timing.cycles - _off_clock(timing) + asked - slope, timing.interconnect + slope)


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
    """Watts that do not scale, that leak, that follow cycles, operations on the rail, operations off it."""
    groups = [sum((getattr(power, name) for name in names), jnp.zeros(())) for names in (CLOCKED, ON_RAIL, OFF_RAIL)]
    return power.constant, power.static, groups[0], groups[1], groups[2]


def _scaled(power: Power, draw: VoltageLine, clock: Array, pace: Pace) -> Power:
    """The components at ``clock`` relative to the requested one."""
    volts = draw.voltage(clock) / draw.voltage(1.0)
    rate = pace.rate(clock)
    factors = {"static": volts**2}
    factors |= dict.fromkeys(CLOCKED, clock * volts**2)
    factors |= dict.fromkeys(ON_RAIL, rate * volts**2) | dict.fromkeys(OFF_RAIL, rate)
    return Power(**{name: watts * factors.get(name, 1.0) for name, watts in power.breakdown().items()})


def _fields(timing: Timing) -> dict[str, Array]:
    return {name: getattr(timing, name) for name in timing.__dataclass_fields__}
