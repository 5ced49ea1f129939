"""Loops of one unit: energies come back from synthetic watts, and a fit to kernels starts from them."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.calibration.power import board, board_fit, unit_loops
from dse.calibration.power.unit_loops import COMMON, fit_loops, is_loop, loop_launches
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import watts_of
from dse.measurement.tasks import unit_loops as tasks
from dse.power.board import FREE, OF_LOOPS
from dse.workload.microbenchmarks import LOOPS

TRUE = {COMMON: 200.0, "tensor_bf16": 1.0, "fp32": 2.4, "l2": 2.2, "dram_path": 30.0}
"""Coefficients of a board that is not the shipped one's."""


def table(noise: float = 0.01) -> pd.DataFrame:
    """The loops of ``dse measure --only power`` on an H100 whose board has the coefficients of TRUE."""
    frame = pd.DataFrame([{"op": t.op, "dtype": t.dtype, **t.shape} for t in tasks(quick=False)])
    sheet = load_sheet("h100_sxm")
    frame = frame.assign(device="H100-SXM5-80GB", latency_us=1.0, power_w=1.0)
    own = loop_launches(frame, sheet)
    frame["latency_us"] = 1.1 * np.asarray(own.own_timing.microseconds)
    model = board_fit.prior_model().with_values({name: jnp.asarray(value) for name, value in TRUE.items()})
    watts = watts_of(model, loop_launches(frame, sheet))
    frame["power_w"] = watts * np.random.default_rng(0).lognormal(0.0, noise, len(frame))
    return frame


@pytest.fixture(scope="module")
def launches():
    return loop_launches(table(), load_sheet("h100_sxm"))


@pytest.fixture(scope="module")
def found(launches):
    return fit_loops(launches)


def test_loops_keep_their_own_unit_busy_and_tell_it_apart(launches):
    rows, op = launches, launches.table["op"].to_numpy()
    for name, counts in (("loop_tensor", "tensor_fma"), ("loop_dram", "dram_bytes"), ("loop_fp32", "fp32")):
        values = np.asarray(getattr(rows.measured, counts))
        for other in (one for one in LOOPS if one != name):  # as many CTAs each
            assert (values[op == name] > 5 * values[op == other]).all(), (name, other)
    moved = {name: np.asarray(rows.measured.l2_bytes)[op == name].min() for name in LOOPS}
    assert moved["loop_l2"] > 100 * max(moved["loop_tensor"], moved["loop_fp32"])
    assert rows.measured.dram_bytes[op == "loop_l2"].max() < 0.05 * moved["loop_l2"]


def test_energies_of_units_come_back(found):
    assert set(found.values) == set(TRUE) and found.rows == dict.fromkeys(LOOPS, 5)
    for name, value in TRUE.items():
        assert name == "l2" or found.values[name] == pytest.approx(value, rel=0.12), name
    assert found.after < 3 < 6 < found.before
    assert [c.name for c in found.alone] == list(OF_LOOPS)
    lanes, cache = found.alone
    assert lanes.low <= lanes.value <= lanes.high and lanes.identified
    assert not cache.identified  # a pJ a byte of the L2 is some watts of hundreds
    said = ", ".join(f"5 of {op}" for op in LOOPS)
    assert found.words().startswith(f"loops of one unit ({said}): {found.before:.1f} % off")


def test_a_fit_to_kernels_starts_from_them(found):
    known, about = board_fit.priors(), dict(zip(FREE, found.about, strict=True))
    for name in ("pipeline", "tensor_bf16", "dram_path"):
        center, spread = known[name]
        assert np.exp(center + spread * about[name]) == pytest.approx(found.values[name], rel=1e-6)
    assert about["softmax"] == about["voltage_slope"] == 0
    assert float(found.start.fp32) == pytest.approx(found.values["fp32"])
    assert float(found.start.tensor_bf16 if hasattr(found.start, "tensor_bf16") else found.start.tensor[0]) > 0


def test_kernels_are_fitted_about_what_loops_say(found, monkeypatch):
    asked = []

    def fit_batch(rows, weights, strength, free=FREE, start=None, pairs=None, pair_weights=None, about=None):
        asked.append((start, about))
        return np.tile(np.exp([board_fit.priors()[name][0] for name in FREE]), (len(weights), 1))

    monkeypatch.setattr(board_fit, "fit_batch", fit_batch)
    from tests.calibration.power.test_board import launches

    board._fits(launches(6), found)
    (start, about), (drawn_from, drawn_about) = asked
    assert float(start.l2) == float(drawn_from.l2) == pytest.approx(found.values["l2"])
    np.testing.assert_allclose(about, np.tile(found.about, (len(about), 1)))
    assert abs(float(np.mean(drawn_about[:, FREE.index("tensor_bf16")])) - found.about[FREE.index("tensor_bf16")]) < 0.6


def test_loops_are_told_from_kernels_and_need_their_size():
    frame = pd.DataFrame({"op": ["gemm", "loop_l2", "loop_l2"], "power_w": [300.0, 200.0, np.nan]})
    assert is_loop(frame).tolist() == [False, True, False]
    bare = table().drop(columns="cols")
    with pytest.raises(InputError, match=r"loop_dram.*cols: give CTAs \(rows\) and iterations \(cols\)"):
        loop_launches(bare, load_sheet("h100_sxm"))


def test_each_loop_shows_a_coefficient_of_the_model():
    shown = {loop.coefficient for loop in LOOPS.values()}
    assert shown <= set(board_fit.priors()) and set(OF_LOOPS) <= shown
    assert unit_loops.COMMON in FREE


def test_loops_alone_are_refused(tmp_path):
    table().to_csv(tmp_path / "loops.csv", index=False)
    with pytest.raises(InputError, match=r"loops\.csv: op: 20 loops of one unit alone; give products or attention"):
        board.calibrate_board(tmp_path / "loops.csv", lambda _: None, 2)
