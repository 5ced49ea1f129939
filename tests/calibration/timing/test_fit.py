"""The staged fit of the timing model: gradients, synthetic recovery, files, refusals; public data where present."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.fit import fit_rows, model_of, objective, parameters, prior_values, priors
from dse.calibration.timing.gpu_timing import _of_device, calibrate_timing
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import SHORTLIST, staged_fit
from dse.cli import run_command
from dse.hardware.presets import load_sheet
from dse.measured.device_models import device_names
from dse.measured.table import read_times
from dse.measured.timed_rows import best, blocks, joined
from dse.timing.calibration import UNSEEN, load_timing_calibration
from experiments import data
from tests.calibration.timing.products import DEVICE, ROWS, products, timed
from tests.programs import quick_jit

TRUTH = {"dram": 0.85, "l2": 0.6, "overlap": 0.4, "split": 2400.0, "launch_k": 2200.0, "tensor": 0.85}


def synthetic(values: dict[str, float], noise: float = 0.03, count: int = ROWS) -> pd.DataFrame:
    """Products measured as a model of known parameters predicts them, with noise."""
    frame = products(count)
    predicted, _ = best(model_of(prior_values("matrix") | values), timed(frame))
    return frame.assign(latency_us=predicted * np.exp(noise * np.random.default_rng(1).standard_normal(len(frame))))


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return synthetic(TRUTH)


def test_the_prior_stands_at_zero_and_bounds_hold():
    prior = priors()
    at = np.asarray(prior.values(jnp.zeros(len(parameters()))))
    np.testing.assert_allclose(at, [p.prior for p in parameters()], rtol=1e-4)
    for sign in (-50.0, 50.0):
        far = np.asarray(prior.values(jnp.full(len(parameters()), sign)))
        assert all(p.low * 0.999 <= x <= p.high * 1.001 for p, x in zip(parameters(), far, strict=True))


def test_a_start_on_a_bound_is_not_flung_to_the_other():
    """Nearly all of the tensor peak, as a fit to other GPUs may say: first steps of a descent are small from there."""
    place = [p.name for p in parameters()].index("tensor")
    prior = priors("matrix", {"tensor": 1.0})
    steps = [float(prior.values(jnp.zeros(len(parameters())).at[place].set(-z))[place]) for z in (0.0, 0.1, 0.5, 50.0)]
    assert steps[0] == pytest.approx(1.0, abs=1e-3)
    assert steps[1] > 0.99 and steps[2] > 0.9
    assert steps[3] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.slow
def test_gradient_equals_finite_differences(measured):
    with jax.enable_x64(True):
        rows = timed(measured.head(40))
        chosen = rows.shortlist(model_of(prior_values("matrix")), 1)  # one candidate: no kink of a minimum
        data = jax.tree.map(lambda x: jnp.asarray(x, float), fit_rows(chosen, np.ones(40), True))
        prior = jax.tree.map(lambda x: jnp.asarray(x, float), priors())
        z = jnp.asarray(0.3 * np.random.default_rng(0).standard_normal(len(parameters())))

        def objective_at(z):
            return objective(z, prior, data, 1e-3)

        both = quick_jit(jax.value_and_grad(objective_at))
        slope, step = np.asarray(both(z)[1]), 1e-5
        for i in range(len(slope)):
            move = step * np.eye(len(slope))[i]
            assert slope[i] == pytest.approx(
                float(both(z + move)[0] - both(z - move)[0]) / (2 * step), rel=1e-3, abs=1e-7
            )


@pytest.mark.slow
def test_known_parameters_are_recovered_within_their_intervals(measured):
    rows = timed(measured)
    fit = staged_fit(rows, np.zeros(len(measured), bool))
    truth = prior_values("matrix") | TRUTH
    told = fit.determined
    sure = [i for i, name in enumerate(told.names) if name not in fit.undetermined and name not in fit.at_bounds]
    assert {"dram", "l2"} <= {told.names[i] for i in sure}
    missed = [told.names[i] for i in sure if not told.low[i] <= truth[told.names[i]] <= told.high[i]]
    assert len(missed) <= 1, missed  # 95 % intervals of about ten parameters
    assert "wave" in fit.undetermined
    errors = [stage.fitted for stage in fit.stages]
    assert errors[-1] < 4.0 < errors[0]
    assert [s.name for s in fit.stages] == ["published prior", "launch", "width", "memory", "rest", "polish"]
    stages = {p.name: p.stage for p in parameters()}
    assert all({stages[name] for name in s.free} == {s.name} for s in fit.stages[1:-1])
    shortlist = rows.shortlist(fit.model, SHORTLIST)
    assert shortlist.places.shape == (len(measured), SHORTLIST)


@pytest.mark.slow
def test_left_out_rows_move_no_parameter(measured):
    """Their times are tripled: only what is said of them may change."""
    rows = timed(measured)
    out = np.arange(len(measured)) % 3 == 0
    wrong = replace(rows, table=rows.table.assign(latency_us=rows.table["latency_us"] * np.where(out, 3.0, 1.0)))
    found, spoilt = (staged_fit(one, out) for one in (rows, wrong))
    assert spoilt.values == found.values
    assert [stage.fitted for stage in spoilt.stages] == [stage.fitted for stage in found.stages]
    assert spoilt.stages[-1].left_out != found.stages[-1].left_out


def test_calibrate_command_writes_what_it_prints(measured, tmp_path, capsys):
    table, out = tmp_path / "t.csv", tmp_path / "mine.toml"
    measured.to_csv(table, index=False)
    assert run_command(["calibrate", "timing", "h100_sxm", str(table), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] + document["rows_left_out"] == ROWS
    assert document["rows_left_out"] == left_out(timed(measured).table["family"]).sum()
    assert document["tables"][0]["name"] == "t.csv"
    loaded = load_timing_calibration(out)
    fitted = {p["name"]: p["value"] for p in document["parameters"]}
    assert {name: loaded.values[name] for name in fitted} == pytest.approx(fitted, rel=1e-5)
    assert {loaded.values[name] for name in ("turnaround", "lockstep")} == {0.0}  # neutral: no product's
    assert loaded.model.calibration == "h100_sxm, mine.toml"
    mine = [r for r in loaded.error_quantiles if (r.implementation, r.gpu) == ("matrix", "h100_sxm")]
    assert [r.n for r in mine] == [r["n"] for r in document["residuals"]]
    assert {(r.way, r.fitted) for r in mine} == {("aiconfigurator", True)}
    assert any((r.implementation, r.gpu) == ("matrix", UNSEEN) for r in loaded.error_quantiles)  # those of `shared`
    assert {r.implementation for r in loaded.error_quantiles} > {"matrix"}
    run = ["run", "h100_sxm", "gpt2_xl:phase=decode,batch=1,context=128", "--calibration", str(out), "--json"]
    assert run_command(run) == 0
    assert json.loads(capsys.readouterr().out)["calibration"] == "h100_sxm, mine.toml"


def test_few_rows_are_all_fitted_from_the_shared_calibration(measured, tmp_path):
    table, shared = tmp_path / "t.csv", load_timing_calibration("shared")
    few = measured.sample(24, random_state=3)
    few.to_csv(table, index=False)
    whole = calibrate_timing("h100_sxm", [table])
    (answer,) = whole.fits
    assert (answer.rows, answer.rows_left_out) == (24, 0)
    assert answer.fit.stages[0].name == "starting values"
    assert answer.error_quantiles == tuple(r for r in shared.error_quantiles if r.implementation == "matrix")
    whole.write(tmp_path / "few.toml")
    error = load_timing_calibration(tmp_path / "few.toml").model.error_interval
    assert error is not None
    assert error.source == "matrix products on GPUs left out of the fit of shared"  # none of these rows is left out
    assert not error.anywhere  # the fit moved to this GPU
    others = timed(measured.drop(few.index))

    def error(values: dict[str, float]) -> float:
        predicted, _ = best(model_of(values), others)
        return float(np.abs(np.log(predicted / others.table["latency_us"])).mean())

    assert error(answer.fit.values) < 0.7 * error(shared.values)


@pytest.mark.slow
@pytest.mark.parametrize("out", [True, False])
def test_a_layer_swept_over_its_rows_is_fitted_whole(measured, tmp_path, out):
    """One family: whether all of it would be left out or none, the shared calibration's errors stand for its own."""
    shapes = ((n, k) for n in (1024, 2048, 4096, 8192) for k in (1024, 2048, 4096, 8192))
    n, k = next((n, k) for n, k in shapes if left_out([f"g{n}_{k}"])[0] == out)
    bare = measured.assign(n=float(n), k=float(k), m=np.arange(16.0, 16.0 * len(measured) + 1, 16.0))
    bare = bare.assign(latency_us=best(load_timing_calibration("h100_sxm").model, timed(bare))[0])
    bare.to_csv(tmp_path / "t.csv", index=False)
    whole = calibrate_timing("h100_sxm", [tmp_path / "t.csv"])
    (answer,) = whole.fits
    assert (answer.rows, answer.rows_left_out) == (len(bare), 0)
    whole.write(tmp_path / "mine.toml")
    assert load_timing_calibration(tmp_path / "mine.toml").model.error_interval is not None


def test_rows_without_a_device_are_another_gpu_s(measured, tmp_path):
    measured.assign(device=[None] * 100 + [DEVICE] * (len(measured) - 100)).to_csv(tmp_path / "t.csv", index=False)
    frame = read_times(tmp_path / "t.csv").frame
    mine, skipped = _of_device(frame.assign(device=device_names(frame)), load_sheet(DEVICE), "h100_sxm")
    assert (len(mine), skipped) == (len(measured) - 100, {"device '(empty)' is another GPU": 100})


def test_shapes_that_no_product_has_and_repeated_rows_are_skipped(measured, tmp_path):
    good = measured.head(40)
    bad = [good.head(1).assign(**{side: value}) for side, value in (("m", 0.0), ("n", -7.0), ("k", 2.5))]
    pd.concat([good, *bad, good.head(10)]).to_csv(tmp_path / "t.csv", index=False)
    answer = calibrate_timing("h100_sxm", [tmp_path / "t.csv"])
    assert sum(fit.rows + fit.rows_left_out for fit in answer.fits) == 40
    assert answer.skipped == {
        "repeats another row in every column": 10,
        "gemm whose m, n, k are not positive": 2,
        "gemm whose m, n, k are not whole": 1,
    }


def test_times_in_another_unit_are_not_fitted(measured, tmp_path):
    far = measured.assign(latency_us=measured["latency_us"] / 1e3)
    far.to_csv(tmp_path / "ms.csv", index=False)
    with pytest.raises(InputError, match="is latency_us in microseconds, and are the rows of this GPU"):
        calibrate_timing("h100_sxm", [tmp_path / "ms.csv"])


def test_refusals(measured, tmp_path):
    table = tmp_path / "t.csv"
    measured.to_csv(table, index=False)
    with pytest.raises(InputError, match="a100_sxm_80gb: the tables have no row of it; they hold H100-SXM5-80GB"):
        calibrate_timing("a100_sxm_80gb", [table])
    with pytest.raises(InputError, match="no table is given"):
        calibrate_timing("h100_sxm", [])
    measured.head(7).to_csv(table, index=False)
    with pytest.raises(InputError, match=r"too few rows can be fitted \(7 of matrix\); give at least 8"):
        calibrate_timing("h100_sxm", [table])
    measured.assign(op="serving_tpot").to_csv(table, index=False)
    with pytest.raises(InputError, match=r"no row can be fitted: operator is not fitted: serving_tpot \(128\)"):
        calibrate_timing("h100_sxm", [table])
    measured.assign(latency_us=0.0).to_csv(table, index=False)
    with pytest.raises(InputError, match="row 2: latency_us is 0; give a positive time"):
        calibrate_timing("h100_sxm", [table])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "preset", "whole", "long"),
    [
        ("A100-SXM4-80GB", "a100_sxm_80gb", 9.5, 7.0),
        ("H100-SXM5-80GB", "h100_sxm", 5.5, 3.6),
        ("H200-SXM-141GB", "h200", 5.5, 3.6),
    ],
)
def test_shipped_calibrations_on_families_that_no_fit_has_seen(device, preset, whole, long):
    frame = data.frame("aiconfigurator__gemm")
    frame = frame[(frame["device"] == device) & (frame["dtype"] == "bf16")]
    frame = frame[left_out([f"g{n:g}_{k:g}" for n, k in zip(frame["n"], frame["k"], strict=True)])]
    rows = joined(list(blocks(frame, {device: load_sheet(preset)}, None, Skipped())))
    predicted, _ = best(load_timing_calibration(preset).model, rows)
    error = 100 * np.abs(predicted / rows.table["latency_us"].to_numpy() - 1)
    assert len(error) > 500
    assert error.mean() < whole
    assert error[rows.table["latency_us"].to_numpy() >= 50].mean() < long
