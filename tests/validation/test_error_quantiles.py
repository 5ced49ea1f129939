"""Intervals from errors: what a quantile rests on, which rows serve a prediction, what a file keeps."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.timing.calibration import UNSEEN, load_timing_calibration, shipped_calibrations, shipped_implementations
from dse.validation.error_quantiles import (
    LEAST_OF_REGIME,
    coverage_by_others,
    errors_of,
    quantiles,
    rewrite,
    seen,
    unseen,
    ways,
)
from dse.validation.group_errors import interval_of


def errors(error: np.ndarray, gpu: str = "h100_sxm", where: str = "under_10us", family: str = "f") -> pd.DataFrame:
    names = [f"{family}{i}" for i in range(len(error))]
    columns = {"implementation": "matrix", "op": "gemm", "dtype": "bf16", "way": "here", "gpu": gpu, "out": True}
    return pd.DataFrame({"error": error, "where": where, "family": names, **columns})


def test_of_independent_rows_the_next_one_lies_within_in_eighty_per_cent_of_cases():
    draws = np.random.default_rng(0).standard_normal((4000, 26))
    within = [low <= row[-1] <= high for row in draws for low, _, high in [quantiles(row[:-1], map(str, range(25)))]]
    assert np.mean(within) == pytest.approx(0.8, abs=0.02)
    plain = [np.quantile(row[:-1], 0.1) <= row[-1] <= np.quantile(row[:-1], 0.9) for row in draws]
    assert np.mean(plain) < 0.77  # what ordinary quantiles hold


def test_fewer_families_make_wider_intervals():
    error = np.random.default_rng(1).standard_normal(200)
    few, many = (quantiles(error, [str(i % n) for i in range(200)]) for n in (4, 200))
    assert few[0] < many[0] < many[2] < few[2]
    assert few[1] == many[1]


def test_a_further_gpu_lies_within_the_interval_of_others():
    rng, inside = np.random.default_rng(2), []
    for _ in range(400):
        gpus = [errors(0.1 * rng.standard_normal() + 0.1 * rng.standard_normal(60)) for _ in range(5)]
        known = unseen(gpus[:-1], "matrix", "gemm", "bf16")[0]
        inside.append(gpus[-1]["error"].between(known.q10, known.q90).mean())
    assert np.mean(inside) == pytest.approx(0.8, abs=0.04)


def test_regimes_with_few_rows_stand_together():
    parts = {"under_10us": 80, "10_to_50us": 30, "memory_above_50us": 15, "compute_above_50us": 60}
    rows = pd.concat([errors(np.full(n, i / 10), where=w, family=w) for i, (w, n) in enumerate(parts.items())])
    known = {r.regime: r.n for r in seen(rows, ("here",), ("h100_sxm",))}
    assert parts["10_to_50us"] < LEAST_OF_REGIME
    assert known == {"all": 185, "under_10us": 80, "10_to_50us": 45, "memory_above_50us": 45, "compute_above_50us": 60}
    assert {r.regime for r in seen(rows[rows["where"] == "10_to_50us"], (), ())} == {"all"}


def test_every_shipped_implementation_has_an_interval_for_a_gpu_that_nobody_measured():
    shared = load_timing_calibration("shared")
    for name in shipped_implementations():
        mine = {(r.op, r.dtype) for r in shared.error_quantiles if r.implementation == name}
        assert mine
        for op, dtype in mine:
            found = shared.quantiles(name, op, dtype, "all", "nobody's", "nobody's")
            assert (found is not None and found.gpu == UNSEEN) or dtype == "fp8", (name, op, dtype)


def test_rows_with_power_are_another_way_of_measuring():
    table = pd.DataFrame(
        {
            "device": ["H200-SXM-141GB"] * 2,
            "harness": "aiconfigurator",
            "power_w": [np.nan, 300.0],
            "latency_us": 10.0,
            "compute_us": 1.0,
            "memory_us": 2.0,
        }
    )
    assert list(ways(table)) == ["aiconfigurator", "aiconfigurator+power"]
    assert list(ways(table.drop(columns="power_w"))) == ["aiconfigurator"] * 2
    judged = errors_of(table, np.array([5.0, 20.0]))
    assert list(judged["gpu"]) == ["h200"] * 2
    assert list(judged["where"]) == ["under_10us", "10_to_50us"]
    judged = judged.assign(implementation="matrix")
    low, high, *_ = interval_of(judged, load_timing_calibration("h200"), "h200", "gemm", "bf16")
    assert low[0] != low[1] and (low < high).all()


def test_rewriting_intervals_changes_nothing_else(tmp_path):
    path = tmp_path / "h100_sxm.toml"
    path.write_bytes(shipped_calibrations()["h100_sxm"].read_bytes())
    before = load_timing_calibration(path)
    found = seen(errors(np.linspace(-0.1, 0.2, 100)), ("here",), ("h100_sxm",))
    rewrite(path, found)
    after = load_timing_calibration(path)
    assert after.values == before.values and after.overheads == before.overheads
    mine = [r for r in after.error_quantiles if r.implementation == "matrix" and r.gpu != UNSEEN]
    assert [(r.regime, r.n, r.gpu, r.way) for r in mine] == [
        ("all", 100, "h100_sxm", "here"),
        ("under_10us", 100, "h100_sxm", "here"),
    ]
    rewrite(path, found)
    assert load_timing_calibration(path) == after
    (tmp_path / "no.toml").write_text("format = 1\n")
    with pytest.raises(InputError, match=r"no.toml: no table \[harnesses\]"):
        rewrite(tmp_path / "no.toml", found)


def test_a_gpu_lies_within_the_interval_of_others_like_it_and_not_of_others_unlike_it():
    rng = np.random.default_rng(0)
    names, middles = ("a", "b", "c", "d"), (0.0, 0.0, 0.0, 1.0)
    parts = [
        pd.DataFrame({"gpu": name, "where": "compute_above_50us", "error": rng.normal(middle, 0.1, 400)})
        for name, middle in zip(names, middles, strict=True)
    ]
    held = coverage_by_others(parts[:3])
    assert held.keys() == {"a", "b", "c"}
    assert all(70 < share < 90 for share in held.values())
    assert coverage_by_others(parts)["d"] < 5


def test_rows_of_a_gpu_never_fitted_have_a_wider_interval_by_what_is_new_in_words():
    calibration = load_timing_calibration("shared")
    judged = errors(np.zeros(3), gpu="l40s", where="compute_above_50us").assign(way="aiconfigurator")
    plain = interval_of(judged, calibration, "l40s", "gemm", "bf16")
    wide = interval_of(judged, calibration, "l40s", "gemm", "bf16", preset_sheet("l40s"))
    assert set(plain.widened_by) == {""}
    assert all(words.endswith("generation Ada never fitted") for words in wide.widened_by)
    assert (wide.high - wide.low > plain.high - plain.low).all()
    assert wide.high + wide.low == pytest.approx(plain.high + plain.low)
    fitted = interval_of(
        judged.assign(gpu="h100_sxm"), calibration, "h100_sxm", "gemm", "bf16", preset_sheet("h100_sxm")
    )
    assert set(fitted.widened_by) == {""}
