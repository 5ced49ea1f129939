"""The shipped coefficients: one fit to everything that several boards drew, and to how the limit slows an H200."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from boards import Measured, kernels, measured, together
from jax import Array
from rows import pair_rows, power_rows, seen

from dse.calibration.losses import absolute, weighted_mean
from dse.calibration.optimiser import descend
from dse.calibration.power.board_fit import PRIOR_WEIGHT, prior_model, priors
from dse.hardware.gpu import Gpu
from dse.measured.board_watts import predicted
from dse.measured.power_rows import UNFILLED, taken
from dse.power.activity import Activity
from dse.power.board import BoardPower
from dse.timing.timing import Timing

FITTED = ("board", "leak", "pipeline", "idle_sm", "idle_units", "tensor_bf16", "softmax", "dram_path", "voltage_slope",
          "voltage_floor")  # fmt: skip
"""Coefficients that the boards together are fitted to; the others stay at their priors, ``cap_width`` as it was."""

BOARDS = ("H200", "B200", "A100 PCIe", "A10")
"""Boards whose kernels or passes judge a fit without anything that they drew."""

STEPS = 400

Pairs = tuple[Activity, Timing, Gpu, Array, Array]


def without(board: str) -> dict[str, float]:
    """Return the coefficients of the fit that has seen nothing of a board ("": of everything)."""
    return fit([part for part in measured() if part.board != board], None if board == "H200" else pairs())[0]


def fit(
    parts: Sequence[Measured], slowed: Pairs | None, fixed: Mapping[str, float] | None = None
) -> tuple[dict[str, float], float]:
    """Return the fitted values and what is left of the loss: mean relative errors of the parts by their weights, as
    much for the pairs, and the priors. ``fixed``: coefficients that are held."""
    fixed = fixed or {}
    free = tuple(name for name in FITTED if name not in fixed)
    center, spread = jnp.asarray([priors()[name] for name in free]).T
    model = prior_model().with_values({name: jnp.asarray(value) for name, value in fixed.items()})
    theta, loss = _fit(free, model, center, spread, *together(parts), slowed)
    return dict(zip(free, np.exp(np.asarray(center + spread * theta)).tolist(), strict=True)), float(loss)


@partial(jax.jit, static_argnames="free")
def _fit(free, model, center, spread, rows, watts, weights, slowed):
    def loss(theta: Array) -> Array:
        candidate = model.with_values(dict(zip(free, jnp.exp(center + spread * theta), strict=True)))
        off = weighted_mean(absolute(rows.watts(candidate) / watts - 1), weights)
        return off + _slowed(candidate, slowed) + PRIOR_WEIGHT * 0.5 * jnp.sum(theta**2)

    theta = descend(loss, jnp.zeros(len(free)), STEPS)
    return theta, loss(theta)


def _slowed(model: BoardPower, slowed: Pairs | None) -> Array:
    """How far off the sustained times are that the limit makes of the short ones, in the logarithm."""
    if slowed is None:
        return jnp.zeros(())
    counts, timing, gpu, slowdown, weights = slowed
    return weighted_mean(absolute(jnp.log(predicted(model, counts, timing, gpu)[1] / slowdown)), weights)


def pairs() -> Pairs:
    """Return the GEMMs of an H200 that were measured short and sustained, of its training families."""
    rows = pair_rows()
    use = np.flatnonzero(seen(rows))
    table = rows.table.iloc[use]
    slowdown = jnp.asarray((table.sustained_us / table.latency_us).to_numpy())
    return taken(rows.measured, use), taken(rows.measured_timing, use), rows.gpu, slowdown, jnp.ones(len(use))


def judged_parts() -> tuple[Measured, ...]:
    """What judges a fit: everything that it sees, but of an H200 the kernels of all families, and those that no fit
    sees, whose keys and values are not known."""
    h200 = power_rows()
    unfilled = h200.table["operands"].to_numpy() == UNFILLED
    apart = replace(kernels("H200", h200, unfilled), name="H200 over an unfilled cache")
    return (kernels("H200", h200, ~unfilled), apart, *(part for part in measured() if part.name != "H200"))


def left_out() -> dict[str, np.ndarray]:
    """Return predicted over measured watts of each of BOARDS by the fit that has not seen it (rows,)."""
    return {board: ratios(without(board), judged_parts())[board] for board in BOARDS}


def ratios(values: Mapping[str, float], parts: Sequence[Measured]) -> dict[str, np.ndarray]:
    """Return predicted over measured watts of each part (rows,), by its name, with fitted ``values``."""
    rows, watts, _ = together(parts)
    model = prior_model().with_values({name: jnp.asarray(value) for name, value in values.items()})
    found = np.asarray(jax.jit(lambda model, rows: rows.watts(model))(model, rows)) / watts
    ends = np.cumsum([len(part.watts) for part in parts])
    return dict(zip((part.name for part in parts), np.split(found, ends[:-1]), strict=True))
