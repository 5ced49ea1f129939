"""Coefficients of a board: known ones lie within the intervals that a fit tells."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dse.calibration.power import board, board_fit
from dse.calibration.power.board_fit import PRIOR_WEIGHT, fit_batch, prior_model, priors
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import watts_of
from dse.measured.power_rows import MeasuredLaunches
from dse.power.activity import Activity
from dse.power.board import FREE
from dse.timing.timing import Timing


def launches(families: int) -> MeasuredLaunches:
    """Launches of an H200 of so many families, two of each, that do this and that; watts as the priors have them."""
    rng, count, clock = np.random.default_rng(3), 2 * families, jnp.full(2 * families, 1.98)
    drawn = {name: jnp.asarray(10.0 ** rng.uniform(9, 11, count)) for name in Activity._fields}
    fixed = {
        "nanoseconds": jnp.full(count, 1e6),
        "clock_ghz": clock,
        "tensor_dtype": jnp.zeros(count),
        "busy": jnp.full(count, 0.9),
    }
    nothing = dict.fromkeys((f.name for f in fields(Timing)), jnp.zeros(count))
    timing = Timing(**(nothing | {"selected": 1e6 * clock, "clock_ghz": clock, "feasible": jnp.ones(count)}))
    counts, gpu = Activity(**(drawn | fixed)), load_sheet("h200").record()
    table = pd.DataFrame({"family": [f"f{i // 2}" for i in range(count)], "power_w": 1.0})
    rows = MeasuredLaunches(table, gpu, counts, timing, counts, timing)
    return rows._replace(table=table.assign(power_w=watts_of(prior_model(), rows) * rng.uniform(0.8, 1.2, count)))


@pytest.fixture
def not_minimised(monkeypatch):
    """Fits that end where their loss says, instead of where it is least: what it sees moves them."""
    whole = board_fit._fit.__wrapped__
    monkeypatch.setattr(board_fit, "descend", lambda loss, start, *_: start + loss(start + 0.1))
    monkeypatch.setattr(board_fit, "_fit", jax.jit(lambda *args: whole(*args), static_argnums=1))


def test_a_fit_sees_nothing_of_rows_that_it_does_not_weigh(not_minimised):
    """Nor where another fit of the same call weighs them."""
    rows = launches(4)
    weights = np.array([[1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1]], float)

    def fitted(row: int) -> np.ndarray:
        watts = rows.table["power_w"] * np.where(np.arange(8) == row, 3.0, 1.0)
        return fit_batch(rows._replace(table=rows.table.assign(power_w=watts)), weights, np.full(2, PRIOR_WEIGHT))

    none, first, last = fitted(-1), fitted(0), fitted(7)
    np.testing.assert_array_equal(first[1], none[1])
    np.testing.assert_array_equal(last[0], none[0])
    assert (first[0] != none[0]).all() and (last[1] != none[1]).all()


def test_the_other_families_choose_how_strong_the_prior_is(monkeypatch):
    """Fits of which each strength has its own; one family draws a tenth of the watts, and would choose the weakest."""
    prior = np.exp([priors()[name][0] for name in FREE])
    share = dict(zip(board.STRENGTHS, (0.7, 1.0, 1.3), strict=True))
    monkeypatch.setattr(board_fit, "fit_batch", lambda *args: np.array([share[s] * prior for s in args[-1]]))
    monkeypatch.setattr(board, "_drawn", lambda *_: None)
    rows = launches(6)
    fold, watts = board._folds(rows.table["family"]), watts_of(prior_model(), rows)
    low = fold == fold[0]
    found = board._fits(rows._replace(table=rows.table.assign(power_w=np.where(low, 0.1, 1.0) * watts)))[0]
    assert found.strength == board.STRENGTHS[0]  # all families together: it has its say
    np.testing.assert_allclose(found.ratios["board"][1][low], 10.0, rtol=1e-5)  # without it, the prior itself


def test_what_is_said_of_a_family_left_out_does_not_depend_on_its_own_watts(not_minimised, monkeypatch):
    monkeypatch.setattr(board, "_drawn", lambda *_: None)
    rows = launches(6)
    measured, fold = rows.table["power_w"].to_numpy(), board._folds(rows.table["family"])

    def said(watts: np.ndarray) -> dict[str, np.ndarray]:
        ratios = board._fits(rows._replace(table=rows.table.assign(power_w=watts)))[0].ratios
        return {name: ratios[name][1] * watts for name in ("board", "mean")}

    before = said(measured)
    for out in np.unique(fold)[:2]:
        mine = fold == out
        for name, after in said(np.where(mine, 2 * measured, measured)).items():
            np.testing.assert_allclose(after[mine], before[name][mine], rtol=1e-9)
            assert (after[~mine] != before[name][~mine]).any(), name
