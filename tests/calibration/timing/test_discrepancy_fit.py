"""The fit of what equations leave: known discrepancies come back, noise alone is none, few rows are left alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dse.calibration.timing import discrepancy_fit
from dse.calibration.timing import rows_fit as timing
from dse.calibration.timing.discrepancy_fit import (
    FEWEST_FAMILIES,
    FOLDS,
    RIDGES,
    WIDEST,
    Measured,
    best_choice,
    picked,
    weighed,
    with_discrepancy,
)
from dse.calibration.timing.fit import Determined, model_of, prior_values
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import StagedFit, staged_fit, with_points
from dse.measured.table import OPERATOR_COLUMNS
from dse.measured.timed_rows import TimedRows, best
from dse.timing.calibration import implementation_calibration
from dse.timing.discrepancy import Points
from tests.calibration.timing.products import DEVICE, timed

SMS = 132.0
KIND = "matrix"
NOISE = 0.03
RIDGE = RIDGES[0]


def shapes_of(families: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Products (rows, PROBLEM) of random families (n, k), each at twelve m, and each row's family."""
    rng = np.random.default_rng(seed)
    sides = np.rint(2.0 ** rng.uniform(10, 13, (families, 2)) / 64) * 64
    rows = [(m, n, k) for n, k in sides for m in (16, 64, 96, 128, 160, 192, 256, 320, 512, 1024, 2048, 4096)]
    return np.pad(np.array(rows, float), ((0, 0), (0, 2))), np.repeat(np.arange(families), 12)


def habits(seed: int = 5) -> Points:
    """A library that serves some shapes badly."""
    shapes, _ = shapes_of(12, seed)
    rng = np.random.default_rng(seed)
    return Points(KIND, rng.permutation(shapes)[:12], rng.normal(0.0, 0.3, 12), SMS)


def measured(truth: Points | None, families: int = 50, seed: int = 1, share: float = 1.0) -> Measured:
    shapes, family = shapes_of(families, seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(len(shapes))
    target = share * truth.at(shapes) + noise if truth else noise
    return Measured(KIND, SMS, shapes, target, np.full(len(shapes), share), family % FOLDS)


def test_a_known_discrepancy_is_found_on_families_that_were_not_seen():
    truth, rows = habits(), measured(habits())
    choice = best_choice(rows)
    assert choice is not None
    count, ridge = choice
    points = picked(rows, (count,), ridge)[count]
    shapes, _ = shapes_of(30, seed=2)
    before, after = np.abs(truth.at(shapes)), np.abs(truth.at(shapes) - points.at(shapes))
    assert before.mean() > 2.0 * NOISE
    assert after.mean() < 0.45 * before.mean()


def test_noise_alone_has_none():
    assert [best_choice(measured(None, seed=seed)) for seed in range(4)] == 4 * [None]


def test_what_an_overhead_hides_is_found_all_the_same():
    """Where half the time is the kernel's, half its log error shows."""
    whole, half = (picked(measured(habits(), share=share), (64,), RIDGE)[64] for share in (1.0, 0.5))
    shapes, _ = shapes_of(30, seed=2)
    assert np.corrcoef(whole.at(shapes), half.at(shapes))[0, 1] > 0.9
    assert np.std(half.at(shapes)) == pytest.approx(np.std(whole.at(shapes)), rel=0.25)


def test_a_few_wild_rows_move_little():
    rows = measured(habits())
    wild = rows.target.copy()
    wild[::40] += 3 * WIDEST
    tame, moved = (picked(replace(rows, target=t), (64,), RIDGE)[64] for t in (rows.target, wild))
    shapes, _ = shapes_of(30, seed=2)
    assert np.abs(tame.at(shapes) - moved.at(shapes)).mean() < 0.02


def test_weights_for_other_rows_keep_the_points():
    rows, points = measured(habits()), picked(measured(habits()), (32,), RIDGE)[32]
    again = weighed(replace(rows, target=np.zeros_like(rows.target)), points, RIDGE)
    np.testing.assert_array_equal(again.sizes, points.sizes)
    assert np.abs(again.at(rows.sizes)).max() < 1e-9


def products(families: int) -> pd.DataFrame:
    shapes, _ = shapes_of(families, seed=3)
    table = pd.DataFrame(shapes[:, :3], columns=["m", "n", "k"]).assign(op="gemm", dtype="bf16", device=DEVICE)
    return table.assign(source="aiconfigurator", latency_us=1.0).reindex(columns=["source", *OPERATOR_COLUMNS])


def fitted(table: pd.DataFrame) -> tuple[TimedRows, StagedFit]:
    """Rows measured as AMALI with a library's habits predicts them, and a fit that found all but these."""
    rows, values = timed(table), prior_values("matrix")
    us, chosen = best(replace(model_of(values), discrepancy=habits().record()), rows)
    us = us * np.exp(NOISE * np.random.default_rng(1).standard_normal(len(us)))
    plain, _ = best(model_of(values), rows)
    nothing = Determined((), *(np.zeros(0),) * 5)
    return replace(rows, table=rows.table.assign(latency_us=us)), StagedFit(values, (), nothing, plain, chosen)


def test_a_fit_ends_with_what_its_equations_leave():
    """Measurements of AMALI with a library's habits: they are found, and told as the last stage."""
    rows, plain = fitted(products(40))
    us, out = rows.table["latency_us"].to_numpy(), left_out(rows.table["family"])
    fit = with_discrepancy(plain, rows, out, KIND)
    assert fit.discrepancy is not None
    (stage,) = fit.stages
    before = 100 * np.abs(plain.predicted_us[out] / us[out] - 1).mean()
    assert stage.name == "discrepancy" and stage.rows == (~out).sum()
    assert stage.left_out is not None and stage.left_out < 0.6 * before
    again, _ = best(replace(model_of(fit.values), discrepancy=fit.discrepancy.record()), rows)
    np.testing.assert_allclose(again, fit.predicted_us, rtol=1e-6)


def test_rows_left_out_say_nothing_of_what_the_equations_leave(monkeypatch):
    for name, value in {"COUNTS": (12,), "RIDGES": RIDGES[:1], "ROUNDS": 1}.items():
        monkeypatch.setattr(discrepancy_fit, name, value)
    monkeypatch.setattr("dse.measured.timed_rows.slowdowns", lambda *args: np.ones(len(args[3])))
    rows, plain = fitted(products(26))
    out, us = left_out(rows.table["family"]), rows.table["latency_us"].to_numpy()

    def found(times: np.ndarray | float) -> Points | None:
        one = replace(rows, table=rows.table.assign(latency_us=us * times))
        return with_discrepancy(plain, one, out, KIND).discrepancy

    first, spoilt, moved = (found(times) for times in (1.0, np.where(out, 3.0, 1.0), np.where(out, 1.0, 1.1)))
    assert first is not None and spoilt is not None and moved is not None
    np.testing.assert_array_equal(spoilt.sizes, first.sizes)
    np.testing.assert_array_equal(spoilt.weights, first.weights)
    assert not np.array_equal(moved.weights, first.weights)


def test_few_rows_leave_the_equations_alone():
    rows, plain = fitted(products(FEWEST_FAMILIES - 1))
    assert with_discrepancy(plain, rows, np.zeros(len(rows.table), bool), KIND) is plain


def test_a_fit_to_few_rows_keeps_the_discrepancy_that_it_starts_from(monkeypatch):
    near = replace(implementation_calibration("matrix_early"), discrepancy=habits())
    for families, kept in ((3, near.discrepancy), (40, None)):
        rows, plain = fitted(products(families))
        asked = {}

        def fit(rows, out, *_, plain=plain, asked=asked, **options) -> StagedFit:
            asked.update(options)
            return replace(plain, discrepancy=options["discrepancy"])

        monkeypatch.setattr(timing, "staged_fit", fit)
        answer = timing.fit_timed("mine", [], ("h100_sxm",), rows, near=near)
        assert asked["discrepancy"] is kept
        assert answer.fit.discrepancy is not None and (answer.fit.discrepancy is kept) == (kept is not None)
        assert "[discrepancy]" in "\n".join(answer.lines())


@pytest.mark.slow
def test_few_rows_with_the_discrepancy_of_before_say_what_changed():
    """Where memory is slower than it was, 24 rows tell, and what the library serves badly is not forgotten."""
    rows, plain = fitted(products(30))
    truth = with_points(plain.values | {"dram": 0.8 * plain.values["dram"]}, habits())
    us = best(truth, rows)[0] * np.exp(NOISE * np.random.default_rng(1).standard_normal(len(rows.table)))
    rows = replace(rows, table=rows.table.assign(latency_us=us))
    unused = np.ones(len(us), bool)
    unused[np.random.default_rng(0).choice(len(us), 24, replace=False)] = False
    off = {}
    for held in (None, habits()):
        fit = staged_fit(rows, unused, start=plain.values, discrepancy=held)
        off[held is not None] = 100 * np.abs(fit.predicted_us / us - 1)[unused].mean()
    assert off[True] < 4.0 and 2.0 * off[True] < off[False], off
