"""Sustained rates and costs: neutral by default, monotone and finite with fitted values."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_gpu
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration, shipped_calibrations
from dse.timing.memory import memory
from dse.timing.models import timing_model
from dse.timing.occupancy import waves
from dse.timing.sustained import Sustained
from dse.timing.timing import Timing
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED
from tests.programs import quick_jit

SHAPES = (Gemm(1, 4096, 4096), Gemm(64, 512, 65536), Gemm(4096, 4096, 4096), Gemm(128, 8192, 64, b_distance=4e6))
FITTED = Sustained(0.95, 0.97, 0.75, 1.05, 0.85, 500.0, 90.0, 0.9, 0.22, 0.2, 0.25, 1500.0, 0.06)


def kernels(library=REPRESENTATIVE) -> Kernel:
    made = [gemm_operator("g", gemm, (9.0, 9.0), library=library) for gemm in SHAPES]
    return Kernel.stack([c.kernel for operator in made for c in operator.candidates]).as_arrays()


@quick_jit
def timed(model: Amali, gpu, batch: Kernel) -> Timing:
    """One program for every GPU and every value of a model's costs."""
    return jax.vmap(lambda kernel: model(kernel, gpu))(batch)


def floats(record):
    return jax.tree.map(lambda x: jnp.asarray(x, float), record)


def cycles(model: Amali, gpu, batch: Kernel) -> np.ndarray:
    return np.asarray(timed(floats(model), floats(gpu), batch).cycles)


def test_neutral_values_change_nothing_but_fitted_ones_do():
    gpu, batch = load_gpu("h100_sxm"), kernels()
    plain = cycles(Amali(), gpu, batch)
    np.testing.assert_array_equal(cycles(Amali(sustained=Sustained()), gpu, batch), plain)
    unchanged = Sustained().derated(gpu)
    assert all(jnp.array_equal(a, b) for a, b in zip(jax.tree.leaves(unchanged), jax.tree.leaves(gpu), strict=True))
    assert (cycles(Amali(sustained=FITTED), gpu, batch) > plain).mean() > 0.9
    assert Amali().calibration == "uncalibrated"


def test_no_kernels_bytes_are_faster_than_the_sheet():
    gpu, kernel = load_gpu("h100_sxm"), gemm_operator("g", SHAPES[0]).candidates[0].kernel
    faster = Sustained(dram=2.0)
    mem = memory(kernel, faster.derated(gpu), jnp.asarray(1.755), latency_is_total=False)
    dram, _ = faster.bytes_cycles(faster.derated(gpu), mem, jnp.asarray(0.0))
    assert float(dram) == pytest.approx(float(mem.dram_bytes) * 1.755 / float(gpu.dram_bandwidth_gbs))


def test_kernels_that_copy_operands_cost_their_bytes_and_rows():
    gpu = load_gpu("h100_sxm")
    kernel = replace(
        gemm_operator("g", SHAPES[0]).candidates[0].kernel, copies=2.0, copied_bytes=1e6, copied_rows=660.0
    )
    mem = memory(kernel, gpu, jnp.asarray(1.755), latency_is_total=False)
    sustained = Sustained(copied=1.5, copied_row=4.0, copy=100.0, split=1000.0)
    kernel, grid = replace(kernel, launches=3.0), waves(kernel, gpu)
    costs = sustained.costs(kernel, gpu, jnp.asarray(2.0), mem, grid, jnp.asarray(0.0))
    assert float(costs.copies) == pytest.approx(660 * 4 / 132 + 1.5e6 * float(mem.dram_byte))
    assert float(costs.copied_bytes) == 1e6
    assert float(costs.kernels) == pytest.approx(2 * (2 * 1000 + 2 * 100))
    assert float(costs.on_sm) == float(costs.after_bytes) == 0


def test_waves_and_ctas_cost_their_sm():
    """Three waves of two CTAs an SM, and a part of one: three starts after the first; each CTA of a resident pair."""
    gpu, kernel = load_gpu("h100_sxm"), gemm_operator("g", SHAPES[2]).candidates[0].kernel
    mem = memory(kernel, gpu, jnp.asarray(1.755), latency_is_total=False)
    grid = waves(kernel, gpu)._replace(resident=jnp.asarray(2.0), full=jnp.asarray(3.0), rest=jnp.asarray(1.0))
    sustained = Sustained(prologue=500.0, wave=90.0, cta=40.0, exposed=0.25)
    for uneven, ctas in ((0.0, 1.0), (3.5, 7.0)):
        costs = sustained.costs(kernel, gpu, jnp.asarray(2.0), mem, grid, jnp.asarray(uneven))
        assert float(costs.on_sm) == pytest.approx(500 + 3 * 90 + 0.75 * 40 * ctas)
        assert float(costs.after_bytes) == pytest.approx(0.25 * 40 * ctas)


@pytest.mark.parametrize(
    "attribute",
    [
        "dram_bandwidth_gbs",
        "l2_slice_bytes_per_cycle",
        "l2_crossbar_bytes_per_cycle",
        "l2_port_bytes_per_cycle",
        "l1_bytes_per_cycle",
        "l2_mib",
        "tensor_fma_bf16",
    ],
)
def test_more_of_a_rate_is_never_slower(attribute):
    gpu, batch, model = load_gpu("h100_sxm"), kernels(TUNED), Amali(sustained=FITTED)
    last = cycles(model, gpu, batch)
    for factor in (1.1, 1.5, 3.0):
        more = gpu.with_attributes({attribute: gpu.attribute(attribute) * factor})
        now = cycles(model, more, batch)
        assert np.isfinite(now).all()
        assert (now <= last * (1 + 1e-5)).all()
        last = now


def test_causes_still_add_up():
    timing = timed(floats(Amali(sustained=FITTED)), floats(load_gpu("h100_sxm")), kernels())
    np.testing.assert_allclose(sum(timing.stack().values(), 0.0), timing.cycles, rtol=1e-5)


def test_only_warps_of_other_ctas_hide_what_a_cta_in_lockstep_waits_for():
    found = [float(Sustained(lockstep=0.6).apart(jnp.asarray(ctas))) for ctas in (0.5, 1.0, 2.0, 6.0)]
    assert found == pytest.approx([0.4, 0.4, 0.7, 0.9])  # of two CTAs' warps half are the waiting one's own


def test_results_that_follow_the_work_are_no_longer_than_it():
    """A share of the results is written when their products are done: as much as the products' own time may hide."""
    costs = Sustained(write=0.5)
    for on_sm, writes in ((1000.0, 10.0), (10.0, 1000.0)):
        assert float(costs.overlap_loss(*map(jnp.asarray, (on_sm, 500.0, writes)))) == 0.5 * 10


def test_of_work_and_bytes_the_shorter_shows_in_part():
    """A share of it where both are equal, else less; which is which does not matter."""
    costs = Sustained(overlap=0.4)
    for on_sm, bytes_time, shown in ((100.0, 100.0, 40.0), (50.0, 100.0, 10.0), (100.0, 50.0, 10.0)):
        assert float(costs.overlap_loss(*map(jnp.asarray, (on_sm, bytes_time, 0.0)))) == pytest.approx(shown)


def test_shares_are_of_the_rate_that_they_name():
    gpu, shares = load_gpu("h100_sxm"), Sustained(tensor=0.5, dram=0.6, l2=0.7, l2_port=0.8, shared=0.9)
    derated = shares.derated(gpu)
    rates = {
        "tensor_fma_bf16": 1.0,
        "tensor_cores_per_sm": 0.5,
        "dram_bytes_per_ns": 0.6,
        "dram_bandwidth_gbs": 1.0,
        "l2_bytes_per_ns": 0.7,
        "l2_port_bytes_per_cycle": 0.8,
        "l1_bytes_per_cycle": 0.9,
        "fp32_lanes": 1.0,
    }
    for name, ratio in rates.items():
        before, after = (g.l2_bytes_per_ns if name == "l2_bytes_per_ns" else g.attribute(name) for g in (gpu, derated))
        assert float(after / before) == pytest.approx(ratio), name


def test_libraries_differ_in_what_they_offer():
    few, many = (gemm_operator("g", Gemm(96, 4096, 4096), (9.0, 9.0), library=x) for x in (REPRESENTATIVE, TUNED))
    labels = [{c.label for c in o.candidates} for o in (few, many)]
    assert len(labels[1]) > 1.5 * len(labels[0])
    assert any("split-k 24" in label for label in labels[1] - labels[0])


def test_shipped_calibrations_load_by_name_and_name_themselves():
    assert {"shared", "a100_sxm_80gb", "h100_sxm", "h200"} <= set(shipped_calibrations())
    for name in shipped_calibrations():
        found = load_timing_calibration(name)
        assert found.model.calibration == name
        assert found.quantiles("matrix", "gemm", "fp16", "under_10us") is not None
        assert found.quantiles("matrix", "gelu", "fp16", "all") is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"model": "amali", "calibration": "h100"}, "no calibration is called 'h100'; did you mean .*'h100_sxm'"),
        ({"model": "roofline", "calibration": "shared"}, "roofline cannot be calibrated"),
        ({"model": "amali", "calibration": "shared", "launch": {"k": 1.0}}, "launch and calibration are both given"),
        ({"model": "amali", "calibration": 3}, "give the name of a calibration or a path"),
        ({"model": "amali", "calibration": "none.toml"}, "none.toml: no such file"),
    ],
)
def test_wrong_calibrations_are_refused(spec, words):
    with pytest.raises(InputError, match=words):
        timing_model(spec, "space.toml: timing")


def test_broken_files_are_refused(tmp_path):
    path = tmp_path / "c.toml"
    for text, words in (
        ("format = 'x'", "give a file that 'dse calibrate timing -o' wrote"),
        ("format = 'dse timing calibration 1'", "give a file that 'dse calibrate timing -o' wrote"),
        ("format = 'dse timing calibration 2'\nname = 'a'", r"no table \[parameters.launch_k\]"),
        ("format = 'dse timing calibration 2'\nname = 'a'\n[parameters.dramm]\nvalue = 1", "did you mean 'dram'"),
        ("format = 'dse timing calibration 2'", "name is None; give a text"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            load_timing_calibration(path)
