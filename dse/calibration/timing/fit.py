"""Fit AMALI's sustained rates and costs to measured times: priors, bounds, one stage, and what the rows determine.

A parameter is p = low (high / low)^sigmoid(c + s z): never beyond its bounds, log-normal about its prior with the
deviation ``spread`` near it, z = 0 at the prior. The loss is robust on log(predicted / measured), and the gradient runs
through the timing model; each row takes the fastest of its shortlisted candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import quick_derivatives_jit
from dse.base.package_tables import read_table
from dse.calibration.losses import CORNER, absolute, weighted_mean
from dse.calibration.optimiser import descend
from dse.evaluate.batching import with_kernel_axis
from dse.evaluate.steps import timings
from dse.hardware.gpu import Gpu
from dse.measured.timed_rows import Chosen, as_read, us_of
from dse.timing.amali import Amali
from dse.timing.calibration import calibrated_model
from dse.timing.parameters import PARAMETERS, neutral_values
from dse.workload.kernel import Kernel

NAMES = (*PARAMETERS, "overhead_us")
"""Every parameter; the last is the protocol's."""

FIXED = "fixed"
"""Stage of the parameters that a kind of implementation does not have."""

NOTHING = 1e-9
"""A cost that is not there, in a fit of logarithms."""

PRIOR_WEIGHT = 0.05
"""A prior's half squared deviation against the sum of absolute log errors: Laplace errors of 5 %. Rows of one family
err together, so a family counts as one measurement."""

MOST_FAMILIES = 50
"""Families that count as independent at most: those of one table share a library and a machine."""

STEPS = 150
RATE = 0.1

AT_BOUND = 0.02
"""A parameter this near to a bound, as a share of its range in logarithm, is at the bound."""

NEAR = 0.05
"""Nearer to a bound than this share of its range in logarithm, a prior's deviation is what it is there: in the tail of
the sigmoid a deviation would be many times as wide, and a first step would end at the other bound."""

DETERMINED = 0.5
"""Share of a parameter's answer that must come from the rows for it to be called determined."""


@dataclass(frozen=True)
class Parameter:
    """A fitted number: its stage, prior, bounds and the prior's standard deviation in logarithm."""

    name: str
    stage: str
    unit: str
    prior: float
    low: float
    high: float
    spread: float


class Priors(NamedTuple):
    """Priors of all parameters as arrays (parameters,): logarithms of the bounds, place of the prior, and slope."""

    low: Array
    high: Array
    center: Array
    slope: Array

    def values(self, z: Array) -> Array:
        """The parameters of standard deviations ``z`` from their priors."""
        return jnp.exp(self.low + (self.high - self.low) * jax.nn.sigmoid(self.center + self.slope * z))


@cache
def parameters(kind: str = "matrix") -> tuple[Parameter, ...]:
    """Return every parameter in the order of NAMES, with the priors of a kind of implementation.

    Those that the kind's table does not name keep their neutral value, in the stage FIXED.
    """
    numbers = ("prior", "low", "high", "spread")
    found = {
        row["parameter"]: Parameter(row["parameter"], row["stage"], row["unit"], *(float(row[k]) for k in numbers))
        for row in read_table(f"calibration/priors/{kind}.csv")
    }
    return tuple(found.get(name) or _fixed(name) for name in NAMES)


def _fixed(name: str) -> Parameter:
    neutral = max(neutral_values().get(name, 0.0), NOTHING)
    return Parameter(name, FIXED, "", neutral, neutral * 0.999, neutral * 1.001, 1e-4)


def priors(kind: str = "matrix", values: dict[str, float] | None = None) -> Priors:
    """Return the priors of a kind, centred on ``values`` where given."""
    return priors_of(parameters(kind), values or {})


def priors_of(candidates: Sequence[Parameter], values: Mapping[str, float]) -> Priors:
    """Return the priors of some parameters, centred on ``values`` where given."""
    low, high = (np.log([getattr(p, k) for p in candidates]) for k in ("low", "high"))
    at = np.log([max(values.get(p.name, p.prior), NOTHING) for p in candidates])
    share = np.clip((at - low) / (high - low), 1e-3, 1 - 1e-3)
    inside = np.clip(share, NEAR, 1 - NEAR)
    slope = np.array([p.spread for p in candidates]) / ((high - low) * inside * (1 - inside))
    return Priors(*(jnp.asarray(x) for x in (low, high, np.log(share / (1 - share)), slope)))


def prior_values(kind: str) -> dict[str, float]:
    """Return every parameter's prior."""
    return {p.name: p.prior for p in parameters(kind)}


def model_of(values: dict) -> Amali:
    """Return the timing model of fitted values (numbers or arrays) by parameter; the protocol's overhead is no part."""
    return calibrated_model(values, "")


class FitRows(NamedTuple):
    """What a stage is fitted on: kernels (rows, n), gpus, measured [us], overheads [us] and weights (rows,).

    ``free_overhead`` (rows,): 1 where the overhead is the fitted one instead of ``overhead``; ``family`` (rows,) are
    numbers of shape families; ``shadow`` [us] of :func:`dse.measured.timed_rows.as_read`; ``slower`` [1], what
    power limit and discrepancy of :class:`dse.measured.timed_rows.Chosen` cost, held until candidates are drawn anew.
    """

    kernels: Kernel
    gpus: Gpu
    measured: Array
    overhead: Array
    weights: Array
    free_overhead: Array
    family: Array
    shadow: Array
    slower: Array


def fit_rows(chosen: Chosen, weights: np.ndarray, fit_overhead: bool, size: int = 128) -> FitRows:
    """Return shortlisted rows as a stage takes them, those of weight 0 left out, padded to a multiple of ``size``.

    A few sizes of batches mean a few compiled programs.
    """
    used = np.flatnonzero(weights)
    place = np.resize(used, -(-len(used) // size) * size)
    weight = np.where(np.arange(len(place)) < len(used), weights[place], 0.0)
    table = chosen.table.iloc[place]
    columns = ("latency_us", "overhead_us", "shadow_us")
    us, overhead, shadow = (jnp.asarray(table[column].to_numpy(), float) for column in columns)
    kernels, gpus = jax.tree.map(lambda x: jnp.asarray(x)[place], (chosen.kernels, chosen.gpus))
    family = np.unique(table["family"], return_inverse=True)[1]
    free = jnp.full(len(place), float(fit_overhead))
    slower = jnp.asarray((chosen.slower * chosen.off)[place], float)
    return FitRows(kernels, gpus, us, overhead, jnp.asarray(weight, float), free, jnp.asarray(family), shadow, slower)


def predicted_us(values: Array, rows: FitRows) -> Array:
    """Return the time of each row [us]: the fastest of its candidates, and the protocol's overhead."""
    named = dict(zip(NAMES, values, strict=True))
    model = model_of(named)
    overhead = jnp.where(rows.free_overhead > 0, named["overhead_us"], rows.overhead)
    times = us_of(timings(model, rows.kernels, with_kernel_axis(rows.gpus)))
    time = jnp.min(times, axis=1) * rows.slower
    return as_read(time, overhead, rows.shadow)


def log_error(values: Array, rows: FitRows) -> Array:
    """Return log(predicted / measured) of each row."""
    return jnp.log(predicted_us(values, rows) / rows.measured)


def objective(z: Array, prior: Priors, rows: FitRows, strength: float | Array) -> Array:
    """Return the loss of a fit: mean robust log error, and the distance from the priors."""
    misfit = weighted_mean(absolute(log_error(prior.values(z), rows)), rows.weights)
    return misfit + 0.5 * strength * jnp.sum(z**2)


def prior_strength(rows: FitRows) -> float:
    """Return the weight of the priors against the mean error of ``rows``."""
    return strength_of(len(np.unique(np.asarray(rows.family)[np.asarray(rows.weights) > 0])))


def strength_of(families: int) -> float:
    """Return the weight of the priors against the mean error of rows of so many shape families."""
    return PRIOR_WEIGHT / min(max(families, 1), MOST_FAMILIES)


@jax.jit
def _stage(start: Array, free: Array, prior: Priors, rows: FitRows, strength: Array) -> Array:
    """Standard deviations (parameters,) after a stage in which only those of mask ``free`` may move from ``start``."""

    def loss(move: Array) -> Array:
        return objective(start + free * move, prior, rows, strength)

    return start + free * descend(loss, jnp.zeros_like(start), STEPS, RATE)


def fit_stage(z: np.ndarray, free: set[str], prior: Priors, rows: FitRows) -> np.ndarray:
    """Return the deviations after fitting the parameters named by ``free``, all others held at ``z``."""
    mask = jnp.asarray([float(name in free) for name in NAMES])
    return np.asarray(_stage(jnp.asarray(z, float), mask, prior, rows, jnp.asarray(prior_strength(rows))))


class Determined(NamedTuple):
    """What rows say of parameters at a fit, in the order of ``names``: ``share`` from the rows, 0 to 1; 95 % interval;
    and whether it is at a bound."""

    names: tuple[str, ...]
    values: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray


@quick_derivatives_jit
def _slopes(z: Array, prior: Priors, rows: FitRows) -> tuple[Array, Array]:
    def error(z: Array) -> Array:
        return log_error(prior.values(z), rows)

    return error(z), jax.jacfwd(error)(z)


def determined(z: np.ndarray, free: set[str], prior: Priors, rows: FitRows) -> Determined:
    """Return the resolution (Gauss and Newton's curvature of the misfit against the prior's) and intervals.

    Intervals are the sandwich of the scores summed by shape family, and of the prior's own uncertainty.
    """
    place = np.array([i for i, name in enumerate(NAMES) if name in free])
    error, slope = (np.asarray(x, float) for x in _slopes(jnp.asarray(z, float), prior, rows))
    slope, weights = slope[:, place], np.asarray(rows.weights, float)
    weights = weights / weights.sum()
    root = np.sqrt(error**2 + CORNER)
    data = (slope.T * (weights / root)) @ slope
    strength = prior_strength(rows)
    whole = data + strength * np.eye(len(place))
    share = np.clip(np.diag(np.linalg.solve(whole, data)), 0.0, 1.0)
    # Intervals want the loss's own curvature: Gauss and Newton's replaces it by its chord, which is steeper.
    bent = (slope.T * (weights * CORNER / root**3)) @ slope + strength * np.eye(len(place))
    scores = slope * (weights * error / root)[:, None]
    codes = np.asarray(rows.family)
    summed = np.zeros((codes.max() + 1, len(place)))
    np.add.at(summed, codes, scores)
    inverse = np.linalg.inv(bent)
    covariance = inverse @ (summed.T @ summed + strength**2 * np.eye(len(place))) @ inverse
    deviation = 1.96 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    ends = []
    for sign in (-1.0, 0.0, 1.0):
        moved = np.array(z, float)
        moved[place] += sign * deviation
        ends.append(np.asarray(prior.values(jnp.asarray(moved)))[place])
    low, values, high = ends
    at = np.asarray(jax.nn.sigmoid(prior.center + prior.slope * jnp.asarray(z, float)))[place]
    names = tuple(NAMES[i] for i in place)
    return Determined(names, values, share, low, high, (at < AT_BOUND) | (at > 1 - AT_BOUND))
