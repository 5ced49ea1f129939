"""Measured vector rows: families, floors and shadows, the joint fit, shipped calibrations on left-out public rows."""

import jax
import numpy as np
import pytest

from dse.base.errors import accepted
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import left_out
from dse.hardware.presets import load_sheet
from dse.measured.coverage import SHAPES
from dse.measured.protocol import find_protocol
from dse.measured.protocol_overheads import on_host, overhead_of
from dse.measured.row_operator import family, operator
from dse.measured.row_vector import VECTOR
from dse.measured.table import read_times
from dse.measured.timed_rows import as_read, best, blocks, joined
from dse.timing.calibration import SHARED, load_timing_calibration, shipped_calibrations
from dse.validation.time import validate_time
from dse.workload.implementation import IMPLEMENTATIONS
from dse.workload.operators.vector import FITTED_COUNTS, counts_of
from experiments import data
from experiments.common import vector_fit
from experiments.common.vector_fit import _of_unseen_hosts, _problem, built, fit_vector
from tests.measured.vector_rows import DEVICE, first, rows


def test_floors_by_host_and_shadows():
    known = overhead_of(first(rows("gelu", "neusight", device="T4", dtype="fp32")), find_protocol("neusight"))
    other = overhead_of(first(rows("gelu", "neusight", device="L4", dtype="fp32")), find_protocol("neusight"))
    assert 20 < known[0] < 60
    assert known != other
    assert other[1] > 0
    unknown = find_protocol("unknown")
    assert overhead_of(first(rows()), unknown) == (unknown.overhead_us, 0.0)
    seen = as_read(np.array([1.0, 20.0]), np.array([30.0, 30.0]), np.array([8.0, 8.0]))
    np.testing.assert_allclose(seen, [30.02, 42.0])


@pytest.mark.parametrize("source, name", [("vidur", "vllm_vector"), ("llmservingsim", "vllm_0_19_vector")])
def test_the_harness_says_whose_kernels_ran(source, name):
    made = operator(first(rows(source=source)), 9.0, find_protocol(source))
    assert IMPLEMENTATIONS[int(made.candidates[0].kernel.implementation)] == name


@pytest.mark.parametrize("op", ["rope", "silu_and_mul", "embedding", "rmsnorm", "add"])
def test_the_joint_fit_builds_the_kernels_of_single_rows(op):
    frame = rows(op).assign(group="vidur_Llama-2-70b-hf")
    problem = _problem(frame, {DEVICE: load_sheet(DEVICE)}, "vllm_vector", np.ones(60), [op], [("vidur", "any", "any")])
    counts = np.array([[getattr(counts_of("vllm_vector", op), name)] for name in FITTED_COUNTS])
    together = built(problem, counts)
    way = find_protocol("vidur")
    for i, row in enumerate(frame.itertuples()):
        alone = operator(row, 9.0, way).candidates[0].kernel
        pairs = zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True)
        differ = [(a[i], b) for a, b in pairs if not np.isclose(a[i], b, rtol=1e-5)]
        assert differ in ([], [(0.0, alone.implementation)])  # the joint fit has one implementation, of no index


def test_a_host_without_a_fitted_row_has_the_others_floors_as_slow_as_it_is():
    floors = [("neusight", device, "add") for device in ("P100-PCIE-16GB", "T4", "V100-PCIE-32GB")]
    values = np.array([30.0, 26.0, 33.0, 10.0, 13.0, 16.0])  # no shares and no kernels: floors, then shadows
    found = _of_unseen_hosts(values, floors, np.array([1, 2, 2]), (0, 3, ()))
    known = {"T4": (26.0, 13.0), "V100-PCIE-32GB": (33.0, 16.0)}
    assert (found[0], found[3]) == pytest.approx(on_host(known, "neusight", "P100-PCIE-16GB"))
    np.testing.assert_array_equal(np.delete(found, [0, 3]), np.delete(values, [0, 3]))
    np.testing.assert_array_equal(_of_unseen_hosts(values, floors, np.array([], int), (0, 3, ())), values)


@pytest.mark.slow
def test_a_joint_fit_recovers_times_it_made():
    frame, sheets = rows(count=120), {DEVICE: load_sheet(DEVICE)}
    model = load_timing_calibration("h100_sxm").model
    predicted, _ = best(model, joined(list(blocks(frame, sheets, None, Skipped()))))
    noisy = frame.assign(latency_us=predicted * np.exp(0.03 * np.random.default_rng(1).standard_normal(120)))
    fit = fit_vector(noisy, sheets, "vllm_vector", np.ones(120), steps=300)
    assert np.abs(fit.predicted_us / predicted - 1).mean() < 0.04
    assert fit.counts["silu_and_mul"].keys() == set(FITTED_COUNTS)


def test_a_joint_fit_sees_nothing_of_rows_left_out(monkeypatch):
    """A fit that ends a loss away from where it began, instead of where it is least: what the loss sees moves it."""
    monkeypatch.setattr(vector_fit, "descend", lambda loss, start, *_: start + loss(start))
    monkeypatch.setattr(vector_fit, "slowdowns", lambda *args: np.ones(24))
    frame, weights = rows(count=24), np.where(np.arange(24) % 3, 1.0, 0.0)

    def fitted(us):
        return fit_vector(frame.assign(latency_us=us), {DEVICE: load_sheet(DEVICE)}, "vllm_vector", weights)

    seen = weights > 0
    found, spoilt, moved = (fitted(us) for us in (20.0, np.where(seen, 20.0, 30.0), np.where(seen, 30.0, 20.0)))
    for one in ("sustained", "counts", "floors"):
        assert getattr(spoilt, one) == getattr(found, one) != getattr(moved, one)
    np.testing.assert_array_equal(spoilt.predicted_us, found.predicted_us)


PUBLISHED = [
    ("vidur__elementwise_norm", 10.0, 6.5),
    ("neusight__vector_fp32", 0.0, 6.5),
    ("aiconfigurator__quant_elementwise", 0.0, 12.0),
    ("llmservingsim__layers", 0.0, 8.5),
]


@pytest.mark.parametrize("table, least, most", PUBLISHED)
def test_shipped_calibrations_on_left_out_rows(table, least, most):
    frame = read_times(data.path(table)).frame
    frame = frame[frame["op"].isin(VECTOR) & (frame["latency_us"] >= least)]
    frame = frame[left_out([family(row) for row in frame.itertuples()])]
    off = []
    for device, mine in frame.groupby("device"):
        sheet = load_sheet(str(device))
        model = load_timing_calibration(sheet.name if sheet.name in shipped_calibrations() else SHARED).model
        timed = joined(list(blocks(mine, {str(device): sheet}, None, Skipped())))
        off.append(100 * np.abs(best(model, timed)[0] / timed.table["latency_us"].to_numpy() - 1))
    assert np.concatenate(off).mean() < most


def test_a_single_row_is_shared_out_where_nobody_says_whose_kernel_ran():
    """PyTorch's CTAs take shares of all elements, vLLM's a row each: of a row of 67 million the faster is taken."""
    one = rows("gelu", "", count=1).assign(rows=1.0, cols=2.0**26)
    labels = [c.label for c in operator(first(one), 9.0, find_protocol("unknown")).candidates]
    assert {label.split()[0] for label in labels} == {"vllm_vector", "pytorch_vector"}
    timed = joined(list(blocks(one, {DEVICE: load_sheet(DEVICE)}, None, Skipped())))
    assert best(load_timing_calibration(SHARED).model, timed)[0][0] < 400


def test_validation_counts_what_it_cannot_do(tmp_path):
    frame = rows(count=40)
    frame.loc[3, "cols"] = np.nan
    frame.loc[4, "op"] = "sort"
    frame.loc[5, "dtype"] = "int8"
    frame.to_csv(tmp_path / "t.csv", index=False)
    document = validate_time(tmp_path / "t.csv").document
    assert document["rows_skipped"] == {
        "silu_and_mul without its rows, cols": 1,
        f"no kernel is made yet for operator 'sort'; {accepted('sort', SHAPES)}": 1,
        "no kernel is made for silu_and_mul in int8 (accepted are bf16, fp16, fp32)": 1,
    }
    group = document["groups"][0]
    assert (group["op"], group["regime"], group["n"]) == ("silu_and_mul", "all", 37)
    assert group["interval_80_coverage"] is not None
