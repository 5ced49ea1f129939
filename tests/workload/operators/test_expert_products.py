"""Products of a mixture's experts: whose kernels run them, with which tiles, and what they compute."""

from dataclasses import replace

import numpy as np
import pytest

from dse.base.package_tables import read_table
from dse.hardware.presets import load_sheet
from dse.timing.calibration import shipped_implementations
from dse.timing.product_error import fitted_products
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.kernel import Kernel
from dse.workload.operators.expert_products import EXPERTS, expert_kernels
from dse.workload.operators.expert_rows import ExpertRows
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import TUNED, WARPGROUP_ALONE
from dse.workload.parse import load_workload
from dse.workload.target import Target
from tests.timing.designs import CALIBRATED, TENSOR, evaluate

HOPPER, AMPERE, BLACKWELL, TURING = (9.0, 9.0), (8.0, 8.0), (10.0, 10.0), (7.5, 7.5)
VLLM, SGLANG = "vllm-0.24.0", "sglang-0.5.10"


def candidates(rows, release=VLLM, capabilities=HOPPER, width=1024, a="bf16", b="bf16", compute="bf16"):
    """The kernels of experts' products down."""
    own = expert_kernels(a, b, capabilities, capabilities[0] >= 9, release)
    rows = own.rows_of(rows, width) if own else rows
    gemm = Gemm(rows.mean, 2048.0, float(width), rows.distinct, a, b, compute, groups=rows)
    library = replace(TUNED.on([16], 200.0), framework=release)
    return gemm_operator("down", gemm, capabilities, capabilities[0] >= 9, library=library).candidates


def test_every_implementation_of_the_table_is_calibrated_and_of_its_kind():
    named = {row["implementation"] for row in read_table("calibration/expert_products.csv")}
    assert named == {name for name, kind in KINDS.items() if kind == EXPERTS}
    assert named <= set(shipped_implementations())


def test_tiles_of_the_table_are_named_by_a_release():
    rows = read_table("calibration/expert_products.csv")
    named = {row[column] for row in rows for column in ("tiles", "tuned_tiles")} - {""}
    assert named == {row["tiles"] for row in read_table("calibration/expert_tiles.csv")}


@pytest.mark.parametrize(("tokens", "label"), [(16, "16x64"), (80, "32x128"), (300, "64x128"), (4096, "128x128")])
def test_vllm_chooses_its_tile_by_all_tokens(tokens, label):
    found = candidates(ExpertRows(tokens, 64, 8, 1, "balanced"))
    assert {one.label.split()[1] for one in found} == {label}


def test_sglang_chooses_its_tile_by_tokens_over_the_experts_of_a_rank():
    for tokens, label in ((64, "16x32"), (65, "64x64")):
        found = candidates(ExpertRows(tokens, 64, 8, 1, "balanced"), SGLANG)
        assert {one.label.split()[1] for one in found} == {label}


def test_shapes_in_sglangs_tables_have_tuned_tiles():
    rows = ExpertRows(4096, 8, 2, 1, "balanced")
    assert len({one.label for one in candidates(rows, SGLANG, width=7168)}) > 2
    assert {one.label.split()[1] for one in candidates(rows, SGLANG, width=14336)} == {"64x64"}


def test_warp_level_kernels_run_where_a_gpu_has_no_warpgroup_instructions():
    found = candidates(ExpertRows(4096, 64, 8, 1, "balanced"))
    instead = {one.label: one.kernel.unless_warpgroup_kib for one in found}
    assert instead["wgmma 128x128"] == 0.0 and instead["hmma_16816 128x128"] > 0.0


def test_pairs_of_remote_experts_are_computed_where_a_library_does_not_skip_them():
    rows = ExpertRows(1024, 64, 8, 8, "balanced")
    assert rows.rows == 1024 and rows.met == 1024 and rows.remote == 7 * 1024
    (bare,), (more,) = ({one.kernel.ctas for one in candidates(rows, r)} for r in ("sglang-0.5.14", SGLANG))
    assert bare == 8 * 2 * 2048 / 64 and more - bare == 7 * 1024 / 64 * 2048 / 64


def test_rows_of_weights_that_are_no_whole_vectors_stretch_the_product_down():
    rows = ExpertRows(1024, 64, 8, 1, "balanced")
    aligned, other = (candidates(rows, width=width)[0].kernel.stretch for width in (96, 88))
    assert aligned == 1.0 and other > 1.0


def test_gpus_that_were_not_measured_keep_the_costs_of_other_products():
    assert expert_kernels("bf16", "bf16", TURING, False, VLLM) is None
    assert expert_kernels("bf16", "bf16", (8.0, 9.0), True, VLLM) is None
    assert expert_kernels("fp8", "fp8", AMPERE, False, VLLM) is None
    found = candidates(ExpertRows(1024, 64, 8, 1, "balanced"), capabilities=TURING, a="fp16", b="fp16", compute="fp16")
    assert {KINDS[IMPLEMENTATIONS[int(one.kernel.implementation)]] for one in found} == {"matrix"}


@pytest.mark.parametrize(
    ("release", "implementation"),
    [
        ("vllm_2024", "fp8_vllm_0_19"),
        ("vllm-0.24.1", "fp8_vllm_0_24"),
        ("", "fp8_vllm_0_19"),
        ("trtllm_2024", "fp8_trtllm_1"),
    ],
)
def test_engines_that_are_named_by_a_year_run_the_kernels_of_their_time(release, implementation):
    found = expert_kernels("fp8", "fp8", HOPPER, True, release)
    assert found is not None and found.implementation == f"experts_{implementation}_hopper"


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp8_block", "int4", "w4a16_mxfp4"])
def test_few_rows_have_kernels_where_warpgroup_ones_stand_alone(dtype):
    """As in a sweep of a Hopper's neighbours, where warp-level tiles of other products are left out."""
    text = f"qwen3_30b_a3b:phase=decode,batch=8,context=100,dtype={dtype}"
    found = load_workload(text, Target(HOPPER, True, WARPGROUP_ALONE)).operators
    products = [o for o in found if o.name.startswith("expert_") and o.kind == "gemm"]
    assert len(products) == 2 and all(o.candidates for o in products)


@pytest.mark.parametrize(
    ("capability", "generation"), [(8.0, "sm80"), (8.6, "sm80"), (8.9, "sm89"), (12.0, "sm120"), (12.1, "sm120")]
)
def test_warp_level_kernels_have_the_costs_of_what_their_instructions_multiply(capability, generation):
    """An A100's and an A40's are alike; an L40S multiplies in FP8, an RTX PRO 6000 in FP4, too."""
    found = expert_kernels("bf16", "bf16", (capability, capability), False, "trtllm-1.3")
    assert found is not None and found.implementation == f"experts_bf16_trtllm_1_{generation}"


def test_a_hopper_without_warpgroup_instructions_has_no_record():
    assert expert_kernels("bf16", "bf16", HOPPER, False, VLLM) is None


@pytest.mark.parametrize(("tokens", "label"), [(64, "8x128"), (160, "16x128"), (800, "64x128"), (4096, "128x128")])
def test_trtllm_gen_chooses_its_tile_by_pairs_over_the_experts_of_a_rank(tokens, label):
    rows = ExpertRows(tokens, 64, 8, 1, "balanced")
    found = candidates(rows, capabilities=BLACKWELL, a="fp4", b="fp4", compute="fp4")
    assert [one.label for one in found if one.label.startswith("tcgen05")] == [f"tcgen05 {label}"]


@pytest.mark.parametrize(
    ("capabilities", "b", "instruction"),
    [(HOPPER, "int4", "hmma_16816"), (BLACKWELL, "int4", "hmma_16816"), (HOPPER, "mxfp4", "wgmma")],
)
def test_widened_weights_are_multiplied_as_their_librarys_tiles_are(capabilities, b, instruction):
    found = candidates(ExpertRows(1024, 64, 8, 1, "balanced"), capabilities=capabilities, b=b)
    everywhere = {one.label.split()[0] for one in found if one.kernel.unless_warpgroup_kib == 0.0}
    assert everywhere == {instruction}


@pytest.mark.parametrize(
    ("types", "release", "implementation"),
    [
        (("fp4", "fp4"), "sglang-0.5.14", "nvfp4_sglang_0_5_14"),
        (("fp4", "fp4"), "", "nvfp4_vllm_0_24"),
        (("mxfp8", "mxfp4"), "vllm-0.19", "mxfp4_mxfp8_vllm_0_24"),
        (("bf16", "int4"), "trtllm-1.3", "int4_vllm_0_19"),
    ],
)
def test_types_of_a_blackwell_run_the_nearest_release(types, release, implementation):
    found = expert_kernels(types[0], types[1], BLACKWELL, True, release)
    assert found is not None and found.implementation == f"experts_{implementation}_blackwell"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "dtype"),
    [
        ("b200", "nvfp4"),
        ("b200", "w4a8_mxfp4_mxfp8"),
        ("l40s", "fp8"),
        ("rtx_pro_6000", "nvfp4"),
        ("a100_sxm_80gb", "int4"),
    ],
)
def test_more_of_a_gpu_never_makes_experts_slower(preset, dtype):
    base = load_sheet(preset).numbers()
    twice = [["dram_bandwidth_gbs"], ["sm_count"], TENSOR]
    designs = [base, *(base | {name: 2 * base[name] for name in names} for names in twice)]
    for batch in (8, 2048):
        text = f"qwen3_30b_a3b:phase=decode,batch={batch},context=100,dtype={dtype}"
        operators = load_workload(text, Target.of([base])).operators
        products = [o for o in operators if o.name.startswith("expert_") and o.kind == "gemm"]
        assert len(products) == 2 and all(map(fitted_products, products))
        for product in products:
            timing = evaluate(CALIBRATED, Kernel.stack([c.kernel for c in product.candidates]), designs)
            us = np.where(timing.feasible > 0, timing.nanoseconds, np.inf).min(axis=1)
            assert (us[1:] <= us[0] * (1 + 1e-5)).all() and np.isfinite(us).all()
