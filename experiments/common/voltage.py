"""Voltage and frequency: what DVFS does to a breakdown of watts, and constant power read off a sweep of clocks.

AccelWattch's, a published reference called from Python: the fit of Eq. (3) by experiments/004_accelwattch and 008_dvfs,
the scaling by whoever moves a breakdown of :mod:`dse.power.accelwattch` to another clock (PAPERS.md, DVFS). What a
clock does to a design's watts stands in :mod:`dse.power.power_limit`.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.base.errors import InputError, accepted
from dse.base.numerics import safe_div
from dse.power.power import Power

LEAKING = ("static", "idle_sm")
"""Components that follow the core voltage itself."""

OFF_CORE = ("constant", "dram", "interconnect")
"""Components that do not hang on the core rail: board, HBM on its own rail, links."""

READINGS = ("rails", "released")


class VoltageCurve(eqx.Module):
    """Core voltage over clock, a line through two points [GHz, V]; below the lower one the voltage stays."""

    low_ghz: Array = eqx.field(converter=jnp.asarray)
    low_v: Array = eqx.field(converter=jnp.asarray)
    high_ghz: Array = eqx.field(converter=jnp.asarray)
    high_v: Array = eqx.field(converter=jnp.asarray)

    def __call__(self, clock_ghz: ArrayLike) -> Array:
        """Voltage at a clock [V]; above the upper point the line goes on, since a faster design needs more."""
        slope = safe_div(self.high_v - self.low_v, self.high_ghz - self.low_ghz)
        return self.low_v + slope * jnp.maximum(jnp.asarray(clock_ghz) - self.low_ghz, 0.0)


class VoltageScaling(eqx.Module):
    """What another core voltage makes of a breakdown at the reference voltage; the clock acts through time alone.

    ``reading``: "rails" (recommended: static and idle by r, switching on the core rail by r^2, board, DRAM and links
    not at all; Eq. 2 leaves constant power alone) or "released" (AccelWattch's code: static and idle by r, everything
    else by r^2, constant power and DRAM too; never validated there). r is the voltage over the reference's.
    """

    reading: Literal["rails", "released"] = eqx.field(default="rails", static=True)

    def __check_init__(self) -> None:
        if self.reading not in READINGS:
            raise InputError(
                f"voltage scaling {self.reading!r} does not exist; {accepted(str(self.reading), READINGS)}"
            )

    def __call__(self, power: Power, ratio: ArrayLike) -> Power:
        """Watts by component at ``ratio`` times the reference voltage."""
        r = jnp.asarray(ratio)
        return Power(**{name: watts * self._factor(name, r) for name, watts in power.breakdown().items()})

    def _factor(self, component: str, r: Array) -> Array:
        if component in LEAKING:
            return r
        if self.reading == "rails" and component in OFF_CORE:
            return jnp.ones_like(r)
        return r**2


class CubicFit(NamedTuple):
    """P(f) = cubic f^3 + linear f + constant, Eq. (3), of each kernel; the constant power is common to all.

    ``cubic`` (beta C) [W/GHz^3] and ``linear`` (tau) [W/GHz] have shape (kernels,); ``constant`` [W] is a scalar;
    ``pearson`` is the correlation of fitted and measured power.
    """

    cubic: Array
    linear: Array
    constant: Array
    pearson: Array

    def __call__(self, clock_ghz: ArrayLike) -> Array:
        """Power at a clock [W] of every kernel, shape (kernels, clocks) for clocks of shape (clocks,)."""
        f = jnp.atleast_1d(jnp.asarray(clock_ghz))
        return cubic_power(f, self.cubic[:, None], self.linear[:, None], self.constant)

    def static_power(self, clock_ghz: ArrayLike) -> Array:
        """Static power of every kernel at a reference clock [W], tau f."""
        return self.linear * jnp.asarray(clock_ghz)


def cubic_power(clock_ghz: ArrayLike, cubic: ArrayLike, linear: ArrayLike, constant: ArrayLike) -> Array:
    """Power over clock where voltage is proportional to it [W], Eq. (3): no quadratic term."""
    f = jnp.asarray(clock_ghz)
    return jnp.asarray(cubic) * f**3 + jnp.asarray(linear) * f + constant


def fit_cubic(clock_ghz: ArrayLike, watts: ArrayLike) -> CubicFit:
    """Fit Eq. (3) by least squares to kernels at several clocks, with one constant power for all of them.

    ``clock_ghz`` of shape (clocks,) [GHz]; ``watts`` of shape (kernels, clocks) [W]. Raises InputError for fewer than
    three distinct clocks, which do not determine a kernel's three numbers.
    """
    f, p = jnp.asarray(clock_ghz, float), jnp.atleast_2d(jnp.asarray(watts, float))
    if f.ndim != 1 or p.shape[1] != f.size or len(set(f.tolist())) < 3:
        raise InputError(
            f"a cubic fit needs a power for each of at least three different clocks; got clocks of shape {f.shape} "
            f"and powers of shape {p.shape}"
        )
    kernels = p.shape[0]
    own = jnp.kron(jnp.eye(kernels), jnp.stack([f**3, f], axis=1))  # (kernels * clocks, 2 * kernels)
    features = jnp.concatenate([own, jnp.ones((own.shape[0], 1))], axis=1)
    solution = jnp.linalg.lstsq(features, p.reshape(-1))[0]
    each = solution[:-1].reshape(kernels, 2)
    pearson = jnp.corrcoef(features @ solution, p.reshape(-1))[0, 1]
    return CubicFit(each[:, 0], each[:, 1], solution[-1], pearson)
