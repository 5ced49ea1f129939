"""Products in narrow types: whose kernels run them, with which tiles, and whose costs they have."""

from dataclasses import replace

import pytest

from dse.base.package_tables import read_table
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import TUNED
from dse.workload.operators.matrix_instructions import MMA_16816, TCGEN05, WGMMA
from dse.workload.operators.narrow_products import NARROW, generation_of, narrow_kernels, nearest_release

HOPPER, BLACKWELL, ADA = (9.0, 9.0), (10.0, 10.0), (8.9, 8.9)


def candidates(product, capabilities=HOPPER, release=""):
    """The kernels of a product on GPUs of one compute capability."""
    library = replace(TUNED.on([16], 200.0), framework=release)
    return gemm_operator("x", product, capabilities, capabilities[0] >= 9, library=library).candidates


def names(found):
    """Implementations of some kernels."""
    return {IMPLEMENTATIONS[int(c.kernel.implementation)] for c in found}


def fp8(m=4096.0, **other):
    """A product in fp8."""
    return Gemm(m, 4096.0, 4096.0, a="fp8", b="fp8", compute="fp8", out="bf16", **other)


@pytest.mark.parametrize(
    ("release", "nearest"),
    [
        ("vllm-0.24.0", "vllm-0.24"),
        ("vllm-0.20.1", "vllm-0.19"),
        ("vllm_0_12", "vllm-0.19"),
        ("trtllm-1.3.0", "trtllm-1"),
        ("pytorch_eager", "vllm-0.24"),
        ("", "vllm-0.24"),
    ],
)
def test_the_nearest_release_is_the_newest_that_is_no_newer_else_the_oldest_else_the_first(release, nearest):
    assert nearest_release(release, ("vllm-0.24", "vllm-0.19", "trtllm-1")) == nearest


def test_every_implementation_of_the_table_is_a_narrow_one_and_every_narrow_one_is_in_the_table():
    named = {row["implementation"] for row in read_table("calibration/narrow_products.csv")} - {""}
    assert named == {name for name, kind in KINDS.items() if kind == NARROW}


def test_tiles_of_the_table_are_named_by_a_release():
    named = {row["tiles"] for row in read_table("calibration/narrow_products.csv")} - {""}
    assert named == {row["tiles"] for row in read_table("calibration/narrow_tiles.csv")}


def test_warp_level_instructions_are_of_the_newest_gpus_generation():
    assert generation_of(WGMMA, None, True) == "hopper"
    assert generation_of(TCGEN05, None, True) == "blackwell"
    assert generation_of(MMA_16816, HOPPER, True) == "hopper"
    assert generation_of(MMA_16816, BLACKWELL, True) == "blackwell"
    assert generation_of(MMA_16816, (12.0, 12.0), False) == generation_of(MMA_16816, None, True) == "warp"


def test_kernels_carry_the_costs_of_type_generation_and_release():
    assert names(candidates(fp8(), release="vllm-0.24.0")) == {"fp8_vllm_0_24_hopper"}
    assert names(candidates(fp8(), BLACKWELL, "sglang-0.5.14")) == {"fp8_sglang_0_5_blackwell"}
    assert names(candidates(fp8(), ADA)) == {"matrix"}  # no costs are fitted without warpgroup instructions
    assert names(candidates(replace(fp8(), a="fp8_block"), release="trtllm-1.3.0")) == {"fp8_block_trtllm_1_hopper"}
    assert names(candidates(replace(fp8(), a="bf16", b="int4", compute="bf16"))) == {"w4a16_trtllm_1_hopper"}


def test_products_in_16_bits_and_those_of_experts_keep_the_costs_of_a_tuned_library():
    bf16 = Gemm(4096.0, 4096.0, 4096.0)
    assert names(candidates(bf16, release="vllm-0.24.0")) == {"matrix"}
    assert names(candidates(replace(fp8(), batch=8.0))) == {"matrix"}


def test_a_release_runs_its_own_tiles_by_rows_without_sharing_a_contraction():
    for m, tiles in ((8.0, {"16x64"}), (100.0, {"64x128"}), (4096.0, {"128x128"})):
        found = candidates(fp8(m), release="vllm-0.24.0")
        assert {c.label.split()[1] for c in found} == tiles
        assert not any("split-k" in c.label for c in found)
    for m, tiles in ((1.0, {"32x64", "32x128"}), (200.0, {"64x128", "128x128"}), (4096.0, {"128x128", "256x128"})):
        found = candidates(fp8(m), ADA)
        assert {c.label.split()[1] for c in found} == tiles
        assert not any("split-k" in c.label for c in found)
    assert any("split-k" in c.label for c in candidates(replace(fp8(64.0), k=65536.0), release="trtllm-1.3.0"))


def test_a_space_of_all_gpus_has_warp_level_kernels_for_those_without_warpgroup_ones():
    found = gemm_operator("g", fp8(4096.0)).candidates
    assert {c.label.split()[0] for c in found} >= {"hmma_16816", "wgmma", "tcgen05"}


def test_pairs_of_ctas_are_launched_whole():
    found = candidates(fp8(513.0), release="vllm-0.24.0")
    assert {float(c.kernel.ctas) for c in found} == {6.0 * 32.0}  # five tiles of rows, and one that fills the pair


def test_types_that_nobody_measured_have_no_kernels_of_their_own():
    assert narrow_kernels("mxfp8", "mxfp8", "hopper") is None
    assert narrow_kernels("fp4", "fp4", "hopper") is None
