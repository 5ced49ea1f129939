"""Calibration in stages."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dse.calibration.timing import fit as timing_fit
from dse.calibration.timing import stages
from dse.calibration.timing.fit import model_of, prior_values
from dse.calibration.timing.stages import StagedFit, staged_fit
from dse.measured.timed_rows import best
from tests.calibration.timing.products import products, timed


def test_a_stage_sees_nothing_of_rows_left_out(monkeypatch):
    """Fits that end a loss away from where they began, instead of where it is least: what a loss sees moves them."""
    stage, seen = timing_fit._stage, []
    monkeypatch.setattr(timing_fit, "descend", lambda loss, start, *_: start + loss(start))
    monkeypatch.setattr(timing_fit, "_stage", jax.jit(lambda *args: stage.__wrapped__(*args)))
    monkeypatch.setattr(stages, "determined", lambda *args: seen.append(args[-1]))
    monkeypatch.setattr("dse.measured.timed_rows.slowdowns", lambda *args: np.ones(48))
    few = {
        "FEWEST": 1,
        "MANY": 1,
        "POLISHES": 2,
        "FIRST_GAIN": -1.0,
        "GAIN": -1.0,
        "SHORTLIST": 2,
        "BATCH": {"matrix": 48},
    }
    for name, value in few.items():
        monkeypatch.setattr(stages, name, value)
    rows = timed(products(48))
    out, plain = np.arange(48) % 3 == 0, best(model_of(prior_values("matrix")), rows)[0]

    def fitted(times: np.ndarray) -> StagedFit:
        us = plain * np.where(np.arange(48) % 2, 1.1, 0.9) * times
        return staged_fit(replace(rows, table=rows.table.assign(latency_us=us)), out)

    found, spoilt, moved = (fitted(times) for times in (np.ones(48), np.where(out, 1.3, 1.0), np.where(out, 1.0, 1.3)))
    assert spoilt.values == found.values != moved.values
    assert [stage.name for stage in found.stages][1:] == ["launch", "width", "memory", "rest", "polish", "polish"]
    assert [(one.rows, one.fitted) for one in spoilt.stages] == [(one.rows, one.fitted) for one in found.stages]
    counted = [np.asarray(rows.measured)[np.asarray(rows.weights) > 0] for rows in seen]
    assert len(counted[0]) == (~out).sum()
    np.testing.assert_array_equal(counted[0], counted[1])  # nor does what the rows determine


def test_a_polish_that_loses_is_left_out(monkeypatch):
    """A stage that ends far off, as a descent may that starts on a bound: what stood before it stands."""
    monkeypatch.setattr("dse.measured.timed_rows.slowdowns", lambda *args: np.ones(48))
    monkeypatch.setattr(stages, "determined", lambda *args: None)
    monkeypatch.setattr(stages, "fit_stage", lambda z, *args: z - 20.0)
    for name, value in {"FEWEST": 1000, "SHORTLIST": 2, "BATCH": {"matrix": 48}}.items():
        monkeypatch.setattr(stages, name, value)
    rows = timed(products(48))
    start = prior_values("matrix")
    us = best(model_of(start), rows)[0]
    found = staged_fit(replace(rows, table=rows.table.assign(latency_us=us)), np.zeros(48, bool))
    assert [stage.name for stage in found.stages] == ["published prior"]
    assert found.values["tensor"] == pytest.approx(start["tensor"])
