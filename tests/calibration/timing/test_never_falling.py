"""Weights by which no time falls: they differ from the best ones where these let times fall, and nowhere else."""

import numpy as np
import pytest

from dse.calibration.timing.discrepancy_fit import RIDGES, Measured, first_points, picked, weighed
from dse.calibration.timing.fit import prior_values
from dse.calibration.timing.never_falling import ALLOWED, CLOSE, NeverFalling
from dse.calibration.timing.product_ladders import (
    MOST_ROWS,
    NETWORKS,
    Ladders,
    ladders_of,
    rows_of,
    weights_of,
)
from dse.calibration.timing.stages import with_points
from dse.measured.timed_rows import fastest_us
from tests.calibration.timing.products import products, timed

SMS, RIDGE = 108.0, RIDGES[0]
STEPS = 2.0 ** np.arange(15)
PAIRS = ((4096.0, 4096.0), (8192.0, 1024.0), (1024.0, 8192.0), (2048.0, 16384.0))


def sizes() -> np.ndarray:
    """Products (products, PROBLEM) of PAIRS, of STEPS rows each."""
    rows = [(m, n, k) for n, k in PAIRS for m in STEPS]
    return np.pad(np.array(rows), ((0, 0), (0, 2)))


def ladders(rise: float) -> Ladders:
    """Ladders whose times rise by ``rise`` [log] a step."""
    places = np.arange(len(PAIRS) * len(STEPS)).reshape(len(PAIRS), -1)
    return Ladders(sizes(), np.tile(rise * np.arange(len(STEPS)), len(PAIRS)), places)


def measured(fall: float) -> Measured:
    """Rows of a library whose products of eight to 64 rows take ``fall`` [log] longer than the equations say."""
    at = sizes()
    slow = (at[:, 0] >= 8) & (at[:, 0] <= 64)
    return Measured("matrix", SMS, at, fall * slow, np.ones(len(at)), np.zeros(len(at), int))


def deepest(off: np.ndarray, on: Ladders) -> float:
    """The deepest fall [log] below a largest time before."""
    logs = (on.logs + off)[on.places]
    return float((np.maximum.accumulate(logs, axis=1) - logs).max())


def test_what_falls_without_the_condition_does_not_with_it():
    rows, flat = measured(0.2), ladders(0.0)
    points = picked(rows, (32,), RIDGE)[32]
    free, bound = weighed(rows, points, RIDGE), weighed(rows, points, RIDGE, flat)
    assert deepest(free.at(rows.sizes), flat) > 0.1
    assert deepest(bound.at(rows.sizes), flat) < ALLOWED + 2 * CLOSE
    np.testing.assert_array_equal(bound.sizes, points.sizes)
    # What it can still say it says: products of many rows are no longer slower than they are.
    assert np.abs(bound.at(rows.sizes) - rows.target).mean() < np.abs(rows.target).mean()


def test_where_nothing_falls_the_condition_changes_nothing():
    rows, steep = measured(0.2), ladders(0.5)
    points = picked(rows, (32,), RIDGE)[32]
    free, bound = weighed(rows, points, RIDGE), weighed(rows, points, RIDGE, steep)
    np.testing.assert_array_equal(bound.weights, free.weights)


def test_no_other_weights_are_nearer():
    """The answer of the programme: any step towards the best weights breaks the condition or is none."""
    rows, flat = measured(0.2), ladders(0.0)
    points = picked(rows, (32,), RIDGE)[32]
    near = rows.near(points.sizes)
    matrix, vector = near.T @ near + RIDGE * np.eye(near.shape[1]), near.T @ rows.target
    condition = NeverFalling(flat, points)
    found, best = condition.solve(matrix, vector), np.linalg.solve(matrix, vector)

    def loss(weights: np.ndarray) -> float:
        return float(weights @ matrix @ weights / 2 - vector @ weights)

    assert condition.held and loss(best) < loss(found)
    tried = 0
    for seed in range(400):
        other = found + 0.02 * np.random.default_rng(seed).standard_normal(len(found)) + 0.05 * (best - found)
        if deepest(points._replace(weights=other).at(rows.sizes), flat) < ALLOWED:
            tried += 1
            assert loss(other) > loss(found) - 1e-6
    nearer = found + 0.05 * (best - found)
    assert deepest(points._replace(weights=nearer).at(rows.sizes), flat) > ALLOWED + CLOSE


def test_points_stand_where_falls_are_stopped():
    rows, flat = measured(0.2), ladders(0.0)
    few = Measured(**{**vars(rows), "sizes": rows.sizes[::3], "target": rows.target[::3], "share": rows.share[::3]})
    condition = NeverFalling(flat, picked(few, (8,), RIDGE)[8])
    points = weighed(few, picked(few, (8,), RIDGE)[8], RIDGE)
    assert condition.wanted(points, 4).shape == (0, 5)  # nothing was stopped yet
    found = first_points(few, 8, RIDGE, flat)
    assert len(found.weights) > len(few.sizes)
    assert deepest(weighed(few, found, RIDGE, flat).at(flat.sizes), flat) < ALLOWED + 2 * CLOSE


def test_falls_are_told_from_the_largest_time_before():
    on = Ladders(np.zeros((5, 5)), np.zeros(5), np.array([[0, 1, 2], [3, 4, -1]]))
    assert on.falls(np.array([0.0, 0.3, 0.2, 0.0, -0.5]), 0.05) == [(3, 4), (1, 2)]
    assert on.falls(np.array([0.0, 0.3, 0.2, 0.0, -0.5]), 0.2) == [(3, 4)]
    assert on.falls(np.array([0.0, 0.1, 0.2, 0.0, 0.5]), 0.0) == []


def test_ladders_are_of_sizes_that_no_measured_time_decides(monkeypatch):
    monkeypatch.setattr("dse.calibration.timing.product_ladders.GENERAL", 2)
    monkeypatch.setattr("dse.calibration.timing.product_ladders.NETWORKS", NETWORKS[:1])
    rows = timed(products(4))
    model = with_points(prior_values("matrix"), None)
    found = ladders_of(rows, model)
    slower = ladders_of(timed(products(4).assign(latency_us=7.0)), model)
    np.testing.assert_array_equal(found.sizes, slower.sizes)
    np.testing.assert_array_equal(found.logs, slower.logs)
    for ladder in found.places:
        mine = ladder[ladder >= 0]
        m, n, k = found.sizes[mine, :3].T
        assert len(set(n)) == len(set(k)) == 1 and m[-1] == MOST_ROWS and (np.diff(m) > 0).all()
        assert (np.diff(found.logs[mine]) >= 0).all() and found.logs[mine[-1]] > found.logs[mine[0]] + 1.0
    assert len(found.places) == len(weights_of(rows.table))


@pytest.mark.parametrize("source", ["aiconfigurator", "vidur"])
def test_a_ladder_is_timed_as_its_rows_are(monkeypatch, source):
    """With the kernels of the library that was measured, of which there are two."""
    monkeypatch.setattr("dse.calibration.timing.product_ladders.GENERAL", 1)
    monkeypatch.setattr("dse.calibration.timing.product_ladders.NETWORKS", NETWORKS[:1])
    model, table = with_points(prior_values("matrix"), None), products(2).assign(source=source)
    found = ladders_of(timed(table), model)
    places = np.resize([0], len(found.sizes))
    frame = table.iloc[places].reset_index(drop=True).assign(**dict(zip("mnk", found.sizes[:, :3].T, strict=True)))
    logs = np.log(fastest_us(model, timed(frame))[0])
    for ladder in found.places:
        mine = ladder[ladder >= 0]
        np.testing.assert_allclose(found.logs[mine], np.maximum.accumulate(logs[mine]), atol=1e-5)


@pytest.mark.parametrize("sms", [108.0, 132.0])
def test_a_ladder_has_a_wave_and_a_row_more(sms):
    full = 128.0 * (4 * sms // 8)  # of four waves; 1024 columns are eight tiles
    assert {full, full + 1} <= {*rows_of(1024.0, sms)}
