"""A roofline with three numbers, found again from its own times."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from dse.hardware.peak import peak_tflops
from dse.hardware.presets import find_preset, load_sheet
from dse.measured.fitted_roofline import CalibratedRoofline, fit_roofline, mean_roofline
from experiments import data
from tests.prediction.laws import X

CORNER = 0.05


def test_a_calibrated_roofline_is_found_again():
    truth = CalibratedRoofline(4000.0, 0.7, 0.85)
    arithmetic, memory = X[:, 0], X[:, 1]
    found = fit_roofline(arithmetic, memory, truth(arithmetic, memory))
    assert found == pytest.approx(truth, rel=1e-3)
    assert mean_roofline([truth, CalibratedRoofline(1000.0, 0.7, 0.85)]).overhead == pytest.approx(2000)


def test_the_slower_of_the_two_takes_its_time_beside_the_overhead():
    roofline = CalibratedRoofline(overhead=3.0, compute=0.5, bandwidth=0.8)
    times = roofline(np.array([10.0, 1.0]), np.array([4.0, 40.0]))
    assert times.tolist() == [3.0 + 10.0 / 0.5, 3.0 + 40.0 / 0.8]


def test_one_row_that_is_far_off_moves_the_fit_little():
    truth = CalibratedRoofline(4000.0, 0.7, 0.85)
    measured = truth(X[:, 0], X[:, 1])
    measured[3] *= 20
    found = fit_roofline(X[:, 0], X[:, 1], measured)
    assert found[1:] == pytest.approx(truth[1:], rel=0.02)


def two_kinds(seed):
    """Forty rows of a layer that take either of two rooflines' times: the loss has several valleys."""
    rng = np.random.default_rng(seed)
    tokens = 2.0 ** rng.integers(0, 14, 40)
    arithmetic, memory = 0.02 * tokens, 3 + 0.01 * tokens
    first, second = (
        CalibratedRoofline(*np.exp(rng.uniform(np.log([1, 0.02, 0.02]), np.log([30, 1, 1])))) for _ in range(2)
    )
    times = np.where(rng.random(40) < 0.5, first(arithmetic, memory), second(arithmetic, memory))
    return arithmetic, memory, times * rng.lognormal(0, 0.1, 40)


def loss(roofline, arithmetic, memory, measured):
    off = np.log(roofline(arithmetic, memory) / measured) / CORNER
    return float(np.sum(np.sqrt(1 + off**2) - 1))


def from_one_start(arithmetic, memory, measured):
    """The end of one descent, by the same loss."""

    def error(log):
        return np.log(CalibratedRoofline(*np.exp(log))(arithmetic, memory) / measured)

    least = measured.min()
    ends = np.log([[1e-6 * least, 0.01, 0.01], [1e3 * least, 1.5, 1.5]])
    found = least_squares(error, np.log([0.5 * least, 0.75, 0.8]), bounds=ends, loss="soft_l1", f_scale=CORNER)
    return CalibratedRoofline(*np.exp(found.x))


@pytest.mark.parametrize(("seed", "times"), [(12, 1.2), (120, 1.2), (3, 1.04), (153, 1.05)])
def test_a_valley_that_one_start_ends_in_is_left(seed, times):
    rows = two_kinds(seed)
    assert loss(from_one_start(*rows), *rows) > times * loss(fit_roofline(*rows), *rows)


@pytest.mark.parametrize("seed", range(30, 50))
def test_the_fit_is_never_worse_than_from_one_start(seed):
    rows = two_kinds(seed)
    assert loss(fit_roofline(*rows), *rows) <= loss(from_one_start(*rows), *rows) + 1e-5


def test_the_order_of_rows_does_not_count():
    rows = two_kinds(12)
    order = np.random.default_rng(0).permutation(40)
    assert fit_roofline(*rows) == fit_roofline(*(column[order] for column in rows))


def test_what_rows_leave_open_stays_near_the_usual_start():
    memory = np.geomspace(1, 100, 20)
    found = fit_roofline(np.full(20, 1e-3), memory, 5 + memory / 0.7)
    assert found[::2] == pytest.approx((5, 0.7), rel=1e-3)
    assert found.compute == pytest.approx(0.75, rel=0.1)


def products(table, device, dtype):
    """A device's products by its data sheet, and their measured times [us]."""
    frame = data.frame(table)
    rows = frame[(frame["device"] == device) & (frame["dtype"] == dtype)]
    m, n, k = (rows[axis].to_numpy(float) for axis in "mnk")
    numbers = load_sheet(str(find_preset(device))).numbers()
    moved = (2 if dtype in ("fp16", "bf16") else 1) * (m * k + k * n) + 2 * m * n
    arithmetic = 2e-6 * m * n * k / peak_tflops(numbers, "tensor", dtype)
    return arithmetic, moved / numbers["dram_bandwidth_gbs"] * 1e-3, rows["latency_us"].to_numpy(float)


@pytest.mark.parametrize(
    ("table", "device", "dtype"),
    [
        ("vidur__gemm", "A100-SXM4-80GB", "fp16"),
        ("vidur__gemm", "H100-SXM5-80GB", "fp16"),
        ("aiconfigurator__gemm", "H100-SXM5-80GB", "fp8"),
        ("aiconfigurator__gemm", "H200-SXM-141GB", "bf16"),
        ("deepbench__gemm", "V100-SXM2-16GB", "fp16"),
    ],
)
def test_noise_in_the_last_digits_does_not_choose_a_valley(table, device, dtype):
    rows = products(table, device, dtype)
    rng = np.random.default_rng(0)
    shaken = (column * (1 + 1e-12 * rng.standard_normal(len(column))) for column in rows)
    before, after = (
        100 * np.abs(f(*rows[:2]) / rows[2] - 1).mean() for f in (fit_roofline(*rows), fit_roofline(*shaken))
    )
    assert after == pytest.approx(before, abs=0.05)
