"""Fit the board power model to measured launches: power, and optionally how much the power limit slows them down.

Positive coefficients are fitted as logarithms from log-normal priors, whose ranges stand in ``data/power/board.csv``.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import derivatives_quick_to_compile, quick_to_compile
from dse.base.package_tables import read_table
from dse.calibration.devices import shared_out
from dse.calibration.losses import absolute, weighted_mean
from dse.calibration.optimiser import descend
from dse.evaluate.platform import local_platform
from dse.measured.board_watts import predicted
from dse.measured.power_rows import MeasuredLaunches, taken
from dse.power.board import FREE, BoardPower

PRIOR_WEIGHT = 3e-3
"""A prior's half squared deviation against the mean relative error: Laplace errors of 15 % on about 50
independent rows, since hundreds of rows share a hidden state of their operands."""

STEPS = 500


def priors() -> dict[str, tuple[float, float]]:
    """Logarithm of each positive coefficient's prior and its standard deviation: low to high hold four fifths."""
    return {
        row["coefficient"]: (np.log(float(row["prior"])), np.log(float(row["high"]) / float(row["low"])) / 2.56)
        for row in read_table("power/board.csv")
        if float(row["low"]) < float(row["high"])
    }


def units() -> dict[str, str]:
    """Unit of each coefficient."""
    return {row["coefficient"]: row["unit"] for row in read_table("power/board.csv")}


def prior_model() -> BoardPower:
    """The model before any fit."""
    values = {row["coefficient"]: jnp.asarray(float(row["prior"])) for row in read_table("power/board.csv")}
    return BoardPower.from_table().with_values(values)


@partial(jax.jit, static_argnames=("free", "steps"))
def _fit(
    model, free, rows, watts, weights, strength, pairs, slowdown, pair_weights, gpu, center, spread, about, steps=STEPS,
):  # fmt: skip
    """Coefficients (batch, free) for ``weights`` (batch, rows) and ``strength`` (batch,), one by one on each device.

    ``about`` (batch, free): where each fit's prior stands, in its standard deviations from the table's.
    """

    def one(fit: tuple[Array, Array, Array, Array]) -> Array:
        weights, strength, pair_weights, about = fit

        def loss(theta: Array) -> Array:
            candidate = model.with_values(dict(zip(free, jnp.exp(center + spread * theta), strict=True)))
            power, _ = predicted(candidate, rows[0], rows[1], gpu)
            total = weighted_mean(absolute(power / watts - 1), weights)
            if pairs is not None:
                _, slower = predicted(candidate, pairs[0], pairs[1], gpu)
                total += weighted_mean(absolute(jnp.log(slower / slowdown)), pair_weights)
            return total + strength * 0.5 * jnp.sum((theta - about) ** 2)

        return jnp.exp(center + spread * descend(loss, about, steps))

    def fits(*batch: Array) -> Array:
        return jax.lax.map(one, batch, batch_size=local_platform().long_fits)

    return shared_out(fits, (weights, strength, pair_weights, about))


def fit_batch(
    rows: MeasuredLaunches,
    weights: np.ndarray,
    strength: np.ndarray,
    free: tuple[str, ...] = FREE,
    start: BoardPower | None = None,
    pairs: MeasuredLaunches | None = None,
    pair_weights: np.ndarray | None = None,
    about: np.ndarray | None = None,
) -> np.ndarray:
    """Return the coefficients (fits, free) for ``weights`` (fits, rows) and ``strength`` (fits,), in one compiled call.

    Rows that no fit weighs are left out. ``pairs``: launches with a column ``sustained_us`` beside ``latency_us``,
    weighed by ``pair_weights`` (fits, pairs). ``about`` (fits, free): where the prior of each fit stands, in its
    standard deviations from the table's (None: there).
    """
    known = priors()
    center, spread = jnp.asarray([known[name] for name in free]).T
    used = np.flatnonzero(weights.any(axis=0))
    slow, kept = None, np.zeros((len(weights), 1))
    if pairs is not None and pair_weights is not None:
        used_pairs = np.flatnonzero(pair_weights.any(axis=0))
        table, kept = pairs.table.iloc[used_pairs], pair_weights[:, used_pairs]
        slow = (taken(pairs.measured, used_pairs), taken(pairs.measured_timing, used_pairs))
        slowdown = jnp.asarray((table.sustained_us / table.latency_us).to_numpy())
    else:
        slowdown = jnp.ones(1)
    return np.asarray(_fit(
        start or prior_model(), free, (taken(rows.measured, used), taken(rows.measured_timing, used)),
        jnp.asarray(rows.table.power_w.to_numpy()[used]), jnp.asarray(weights[:, used], float),
        jnp.asarray(strength, float), slow, slowdown, jnp.asarray(kept, float), rows.gpu, center, spread,
        jnp.asarray(np.zeros((len(weights), len(free))) if about is None else about, float),
    ))  # fmt: skip


def fit(
    rows: MeasuredLaunches,
    keep: np.ndarray,
    pairs: MeasuredLaunches | None = None,
    keep_pairs: np.ndarray | None = None,
    free: tuple[str, ...] = FREE,
    start: BoardPower | None = None,
) -> dict[str, float]:
    """Fitted values of ``free``; ``keep`` weighs the rows (a bootstrap repeats some)."""
    kept = None if keep_pairs is None else np.asarray(keep_pairs, float)[None]
    found = fit_batch(rows, np.asarray(keep, float)[None], np.array([PRIOR_WEIGHT]), free, start, pairs, kept)
    return dict(zip(free, found[0].tolist(), strict=True))


def data_share(
    rows: MeasuredLaunches,
    values: np.ndarray,
    strength: float,
    free: tuple[str, ...] = FREE,
    start: BoardPower | None = None,
) -> np.ndarray:
    """Return for each coefficient the part of its answer that comes from the data, 0 (the prior) to 1.

    The diagonal of the resolution matrix, with Gauss and Newton's curvature of the mean absolute error.
    """
    known, prior = priors(), start or prior_model()
    center, spread = jnp.asarray([known[name] for name in free]).T

    def error(theta: Array) -> Array:
        model = prior.with_values(dict(zip(free, jnp.exp(center + spread * theta), strict=True)))
        return predicted(model, rows.measured, rows.measured_timing, rows.gpu)[0] / rows.table["power_w"].to_numpy() - 1

    at = (jnp.log(jnp.asarray(values)) - center) / spread
    slope = np.asarray(jax.jit(jax.jacfwd(error), compiler_options=derivatives_quick_to_compile())(at), float)
    weight = 1 / np.asarray(absolute(jax.jit(error, compiler_options=quick_to_compile())(at)), float)
    data = (slope.T * weight) @ slope / len(weight)
    return np.diag(np.linalg.solve(data + strength * np.eye(len(free)), data))
