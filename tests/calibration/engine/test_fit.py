"""The costs of an engine, from runs whose costs are known."""

import numpy as np
import pandas as pd
import pytest

from dse.calibration.engine.fit import Runs, fit_costs
from dse.measured.network_runs.rows import Passes

KNOWN = {"launch_us": 20.0, "step_us": 1500.0, "request_us": 60.0, "prompt_us": 800.0, "reduce_us": 12.0, "turn": 0.6}
FREE = tuple(KNOWN)


def drawn(rows, seed=0):
    """Steps of ``rows`` runs: a decode each, and a share of a prefill."""
    rng = np.random.default_rng(seed)
    n, row = 2 * rows, np.repeat(np.arange(rows), 2)
    others = np.tile([False, True], rows)
    launches = rng.choice([200.0, 400.0, 900.0], n)
    batch = rng.integers(1, 64, n).astype(float)
    gpu = rng.lognormal(9, 1.2, n)
    reductions = rng.choice([0.0, 64.0, 160.0], n)
    runs = np.where(others, rng.uniform(0, 1, n), 1.0)
    return Passes(row, gpu, launches, np.where(others, 0, batch), np.where(others, 1.0, 0.0), reductions, runs, others)


def test_known_costs_are_recovered_through_noise():
    passes = drawn(600)
    exact = np.bincount(passes.row, passes.total_us(KNOWN))
    found = fit_costs(passes, exact, FREE)
    assert found == pytest.approx(KNOWN, rel=1e-3)
    noisy = fit_costs(passes, exact * np.exp(np.random.default_rng(1).normal(0, 0.03, 600)), FREE)
    assert noisy == pytest.approx(KNOWN, rel=0.25)


def test_what_is_not_free_is_nothing_and_broken_runs_weigh_little():
    passes = drawn(300)
    known = dict.fromkeys(KNOWN, 0.0) | {"step_us": 1500.0, "request_us": 60.0, "turn": 0.6}
    measured = np.bincount(passes.row, passes.total_us(known))
    measured[::50] *= 8.0
    found = fit_costs(passes, measured, ("step_us", "request_us", "turn"))
    assert {name for name, value in found.items() if value == 0} == {"launch_us", "prompt_us", "reduce_us"}
    assert found["step_us"] == pytest.approx(1500.0, rel=0.1)
    assert found["request_us"] == pytest.approx(60.0, rel=0.1)


def test_costs_are_those_of_the_runs_that_may_be_seen():
    passes = drawn(60)
    table = pd.DataFrame({"engine": "mine", "family": [f"net{i % 12}" for i in range(60)]})
    exact = np.bincount(passes.row, passes.total_us(KNOWN))
    runs = Runs([(table.assign(latency_us=exact), passes)])
    out = runs.table["out"].to_numpy()
    assert 0 < out.sum() < 40
    wrong = Runs([(table.assign(latency_us=exact * np.where(out, 3.0, 1.0)), passes)])
    free = ("launch_us", "step_us")
    found, spoilt = (one.fit(~out, free, KNOWN) for one in (runs, wrong))
    assert spoilt == found
    assert found == pytest.approx(KNOWN, rel=1e-3)
    assert np.abs(runs.error(out, found)).max() < 1e-3  # of the rows that are asked for, by their own steps
    np.testing.assert_allclose(wrong.error(out, found), -np.log(3.0), atol=1e-3)
