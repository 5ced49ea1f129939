"""The noise of a table's own repeats: against simulated repeats and against a deviation that others computed."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.validation.noise_floor import NOT_AROUND, group_noise, noise_percent, range_of
from experiments import data


def test_the_range_of_normal_draws_is_that_of_the_tables():
    for n, known in ((2, 1.128), (5, 2.326), (10, 3.078), (20, 3.735)):  # d2 of control charts
        assert range_of(n) == pytest.approx(known, abs=5e-4)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_it_finds_the_noise_of_repeats(n):
    repeats = np.random.default_rng(0).normal(100.0, 4.0, (20_000, n))
    rows = pd.DataFrame(
        {
            "latency_us": np.median(repeats, axis=1),
            "rep_n": n,
            "rep_lo_us": repeats.min(axis=1),
            "rep_hi_us": repeats.max(axis=1),
        }
    )
    truth = 4.0 * np.sqrt(2 / np.pi)  # mean |repeat - mean| of normal repeats, percent of 100
    assert group_noise(noise_percent(rows, "t")[0]) == pytest.approx(truth, rel=0.02)


def test_rows_without_repeats_have_none():
    rows = pd.DataFrame(
        {
            "latency_us": 10.0,
            "rep_n": [1, 4, np.nan, 4],
            "rep_lo_us": [9.0, 9.0, 9.0, np.nan],
            "rep_hi_us": [11.0, 11.0, 11.0, 11.0],
        }
    )
    noise, notes = noise_percent(rows, "t")
    assert notes == []
    assert np.isfinite(noise).tolist() == [False, True, False, False]
    assert group_noise(noise) is None  # a quarter of the rows says nothing of the group
    assert group_noise(noise[:2]) == pytest.approx(noise[1])
    assert np.isnan(noise_percent(rows[["latency_us"]], "t")[0]).all()
    with pytest.raises(InputError, match=r"t\.csv: rep_lo_us is 'many'; give a number"):
        noise_percent(rows.assign(rep_lo_us=["many", 1, 1, 1]), "t.csv")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rep_lo_us": 0.009, "rep_hi_us": 0.011}, NOT_AROUND),
        ({"rep_lo_us": 11.0, "rep_hi_us": 12.0}, NOT_AROUND),
        ({"rep_lo_us": -1.0}, NOT_AROUND),
        ({"rep_n": np.inf}, "rep_n is no whole number"),
        ({"rep_n": 5.7}, "rep_n is no whole number"),
    ],
)
def test_repeats_that_cannot_be_the_rows_are_left_out_and_told(wrong, why):
    good = {"latency_us": 10.0, "rep_n": 5.0, "rep_lo_us": 9.0, "rep_hi_us": 11.0}
    noise, notes = noise_percent(pd.DataFrame([good, good | wrong]), "t")
    assert np.isfinite(noise).tolist() == [True, False]
    assert notes == [f"noise floor, repeats left out: {why} (1)"]


@pytest.mark.parametrize(
    ("device", "name"),
    [("A100-SXM4-80GB", "a100_sxm"), ("H100-SXM5-80GB", "h100_sxm"), ("H200-SXM-141GB", "h200_sxm")],
)
def test_it_is_near_the_deviation_of_framework_tables(device, name):
    told = pd.read_csv(data.HERE / "aiconfigurator_spread.csv")
    told = told[(told["device"] == name) & (told["regime"] == "all")]
    rows = data.frame("aiconfigurator__gemm")
    rows = rows[(rows["device"] == device) & (rows["dtype"] == "bf16")]
    found = group_noise(noise_percent(rows, "gemm")[0])
    assert found == pytest.approx(np.average(told["mape"], weights=told["n"]), rel=0.12)
