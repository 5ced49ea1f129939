"""Matrix products: candidates a library would have, and instruction and byte counts by hand."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.measured.rooflines import sheet_times
from dse.timing.amali import Amali
from dse.workload.implementation import IMPLEMENTATIONS, implementation_index
from dse.workload.operators.gemm import MAX_SPLIT_CTAS, Gemm, _side_fits, gemm_operator
from dse.workload.operators.gemm_library import EARLY, REPRESENTATIVE, TUNED, WARPGROUP_ALONE
from tests.programs import quick_jit

LOSS = constant("multicast_loss")
A100, H100, T4 = (8.0, 8.0), (9.0, 9.0), (7.5, 7.5)


def kernels(gemm, capabilities=A100, warpgroup=False):
    """Candidates' kernels by label."""
    return {c.label: c.kernel for c in gemm_operator("gemm", gemm, capabilities, warpgroup).candidates}


def test_a_tile_of_the_product_is_a_cta():
    kernel = kernels(Gemm(4096, 4096, 4096))["hmma_16816 128x128"]
    assert (kernel.ctas, kernel.warps, kernel.loop.repeats) == (32 * 32, 4, 4096 / 32)
    assert kernel.shared_kib == 4 * 16  # four stages of 16 KiB
    kernel = kernels(Gemm(4096, 4096, 4096), H100, True)["wgmma 128x256"]
    assert (kernel.warps, kernel.loop.repeats) == (8, 4096 / 64)
    assert kernel.tensor_instruction_fma == 64 * 256 * 16 / 4  # wgmma.m64n256k16, a fourth a warp


@settings(derandomize=True, max_examples=60, deadline=None)
@given(m=st.integers(1, 9000), n=st.integers(1, 9000), k=st.integers(1, 9000), batch=st.sampled_from([1, 2, 7.5]))
def test_candidates_cover_the_product_and_load_both_operands(m, n, k, batch):
    gemm = Gemm(m, n, k, batch)
    for label, kernel in kernels(gemm, None, True).items():
        covered = kernel.ctas * kernel.warps * kernel.loop.repeats * kernel.loop.tensor_fma
        if kernel.uses_tensor:
            assert covered >= gemm.fma, label
        assert kernel.fma == gemm.fma
        # An SM loads at least one tile's operands; with one tile in all, at least all of A and B.
        loaded = kernel.ctas * kernel.warps * kernel.loop.repeats * kernel.loop.load_bytes
        assert loaded >= gemm.a_bytes / gemm.batch + gemm.b_bytes / gemm.batch
        assert kernel.l2_bytes >= gemm.out_bytes


def test_split_k_adds_a_reduction_and_shortens_the_loop():
    plain, split = (kernels(Gemm(64, 4096, 8192))[f"hmma_16816 64x64{s}"] for s in ("", " split-k 4"))
    assert (plain.launches, split.launches) == (1, 2)
    assert split.ctas == 4 * plain.ctas
    assert split.loop.repeats == plain.loop.repeats / 4
    assert split.write_bytes == plain.write_bytes + 4 * 64 * 4096 * 4.0


def test_splits_are_offered_only_where_k_is_long_and_the_grid_small():
    assert len(kernels(Gemm(64, 64, 255))) == len([k for k in kernels(Gemm(64, 64, 255)) if "split" not in k])
    assert not [label for label in kernels(Gemm(8192, 8192, 8192)) if "split" in label]
    few = [label for label in kernels(Gemm(64, 64, 16384)) if label.startswith("hmma_16816 64x64")]
    assert len(few) == len(REPRESENTATIVE.splits)


@pytest.mark.parametrize(
    ("side", "most", "least"),
    [(16, 16, 1), (32, 32, 1), (64, 9000, 1), (96, 9000, 49), (128, 9000, 65), (256, 9000, 129)],
)
def test_a_small_side_covers_its_dimension_and_a_large_one_is_less_than_twice_as_long(side, most, least):
    fits = [dimension for dimension in range(1, 9001) if _side_fits(side, dimension)]
    assert (fits[0], fits[-1], len(fits)) == (least, most, most - least + 1)


def test_a_grid_is_split_up_to_a_number_of_ctas_and_k_down_to_a_number_of_elements():
    assert MAX_SPLIT_CTAS == 1024

    def splits(gemm):
        labels = [label for label in kernels(gemm) if label.startswith("hmma_16816 64x64 split-k")]
        return [int(label.rsplit(" ", 1)[1]) for label in labels]

    assert splits(Gemm(512, 512, 16384)) == [2, 3, 4, 6, 8, 16]  # 64 tiles: 16 times as many are 1,024
    assert splits(Gemm(512, 576, 16384)) == [2, 3, 4, 6, 8]  # 72 tiles: 16 times as many are 1,152
    assert splits(Gemm(64, 64, 512)) == [2, 3, 4]  # 128 elements a CTA
    assert splits(Gemm(64, 64, 511)) == [2, 3]


@pytest.mark.parametrize(
    ("capabilities", "warpgroup", "dtype", "classes"),
    [
        (A100, False, "bf16", {"hmma_16816"}),
        (H100, True, "bf16", {"hmma_16816", "wgmma"}),
        (T4, False, "fp16", {"hmma_1688"}),
        ((7.0, 7.0), False, "fp16", {"hmma_884"}),
        ((10.0, 10.0), True, "fp8", {"hmma_16816", "tcgen05"}),
        (A100, False, "fp32", {"ffma"}),
        ((7.0, 9.0), True, "fp16", {"hmma_884", "hmma_1688", "hmma_16816", "wgmma"}),
    ],
)
def test_instruction_classes_follow_the_gpus(capabilities, warpgroup, dtype, classes):
    gemm = Gemm(512, 512, 512, 1, dtype, dtype, dtype)
    assert {label.split()[0] for label in kernels(gemm, capabilities, warpgroup)} == classes


def test_a_type_no_gpu_of_the_target_computes_in_is_refused():
    with pytest.raises(InputError, match="no matrix instruction of these GPUs computes in bf16"):
        gemm_operator("qkv", Gemm(64, 64, 64), T4, False)


def test_a_thin_product_takes_thin_tiles():
    rows = {int(label.split()[1].split("x")[0]) for label in kernels(Gemm(1, 4096, 4096))}
    assert {16, 32} <= rows and max(rows) == 64


def test_weight_only_quantisation_reads_fewer_bytes_and_widens_them():
    wide = kernels(Gemm(16, 4096, 4096))["hmma_16816 16x128"]
    narrow = kernels(Gemm(16, 4096, 4096, b="int4"))["hmma_16816 16x128"]
    assert narrow.cold_bytes == 4096 * 4096 * (4 + 16 / 128) / 8
    assert wide.loop.fp32 == 0
    assert narrow.loop.fp32 == 1.5 * 128 * 32 / (32 * 4)  # 1.5 an element, shared by 128 lanes
    assert narrow.loop.tensor_fma == wide.loop.tensor_fma


def test_a_cluster_shares_the_columns_operand():
    alone = kernels(Gemm(4096, 4096, 4096), H100, True)["hmma_16816 128x256"]
    paired = kernels(Gemm(4096, 4096, 4096), H100, True)["wgmma 128x256"]
    assert (alone.cluster, paired.cluster) == (1, 2)
    tiles, out = 32 * 16 * 4096 * 2, 4096 * 4096 * 2
    assert alone.l2_bytes == tiles * (128 + 256) + out
    assert paired.l2_bytes == tiles * (128 + 256 / 2) + out


@pytest.mark.parametrize(("capability", "name"), [(9.0, "wgmma 128x256"), (10.0, "tcgen05 128x256")])
def test_clusters_share_reads_along_both_sides(capability, name):
    """Counted by hand: four CTAs stand two by two and halve both operands, eight four by two; what is sent to more
    than two costs more time."""
    library = REPRESENTATIVE.on([8, 1])
    found = gemm_operator("g", Gemm(4096, 4096, 4096), (capability, capability), library=library).candidates
    mine = {c.kernel.cluster: c for c in found if c.label.split(" cluster")[0] == name}
    steps, out = 32 * 16 * 4096 * 2, 4096 * 4096 * 2
    sent = {1: 128 + 256, 2: 128 + 256 / 2, 4: (128 / 2 + 256 / 2) * LOSS, 8: (128 / 2 + 256 / 4) * LOSS**2}
    assert {size: c.kernel.l2_bytes for size, c in mine.items()} == pytest.approx(
        {size: steps * bytes_ + out for size, bytes_ in sent.items()}
    )
    assert [mine[size].label for size in (1, 2)] == [name, name]
    assert mine[4].label == f"{name} cluster 2x2"


def test_no_cluster_is_wider_than_the_grid_and_larger_ones_are_launched_whole():
    library = REPRESENTATIVE.on([8])
    for m, n, sizes in ((128, 4096, {1}), (256, 4096, {2, 4}), (4096, 256, {2}), (640, 768, {2, 4, 8})):
        found = gemm_operator("g", Gemm(m, n, 4096), H100, library=library).candidates
        mine = {c.kernel.cluster: c.kernel.ctas for c in found if c.label.split(" cluster")[0] == "wgmma 128x256"}
        assert mine.keys() == sizes
    assert mine == {2: 5 * 3, 4: 6 * 4, 8: 8 * 4}  # of 5 x 3 tiles


def test_a_gpu_of_more_registers_has_larger_tiles():
    def tiles(registers, capability=9.0):
        library = REPRESENTATIVE.on([8], 500.0, registers)
        found = gemm_operator("g", Gemm(4096, 4096, 4096), (capability, capability), library=library).candidates
        return {c.label.split()[1] for c in found if c.kernel.warpgroup > 0}

    assert not tiles(65536) & {"256x256", "256x512"}
    assert tiles(131072) & {"256x256", "256x512"} == {"256x256"}
    assert tiles(262144) >= {"256x256", "256x512"}
    assert tiles(262144, 10.0) == tiles(65536, 10.0)  # results lie in tensor memory


def test_a_pipeline_has_the_stages_that_fit():
    """CUTLASS counts stages to the shared memory that there is: four of 24 KiB in 100, two in 64 and below."""
    for room, stages in ((99, [4]), (95, [4, 3]), (63, [4, 3, 2]), (15, [4, 3, 2])):
        found = gemm_operator("g", Gemm(4096, 4096, 4096), (8.0, 8.0), library=REPRESENTATIVE.on([1], room)).candidates
        kernels = [c.kernel for c in found if c.label == "hmma_16816 128x256"]
        assert [kernel.shared_kib for kernel in kernels] == [24 * count for count in stages]
        assert [kernel.unless_kib for kernel in kernels] == [0, 96, 72][: len(stages)]
        waits = [kernel.loop.global_waits for kernel in kernels]
        assert waits == [1 / 3, 1 / 2, 1][: len(stages)]


def test_a_pair_of_sms_holds_one_copy_of_the_columns_operand():
    gemm, b200 = Gemm(4096, 4096, 4096), (10.0, 10.0)
    pair, alone = (kernels(g, b200, True)["tcgen05 128x256"] for g in (gemm, replace(gemm, m=128)))
    assert (pair.cluster, alone.cluster) == (2, 1)
    depth, stages = 64, 4
    assert pair.shared_kib == stages * (128 + 256 / 2) * depth * 2 / 1024
    assert alone.shared_kib == stages * (128 + 256) * depth * 2 / 1024
    assert pair.loop.load_bytes * pair.warps == (128 + 128) * depth * 2
    # One instruction reads 128 rows and its own half of 256 columns, 32 B of k each.
    assert pair.loop.shared_bytes * pair.warps == depth * 2 / 32 * (128 + 128) * 32
    assert alone.loop.shared_bytes * alone.warps == depth * 2 / 32 * (128 + 256) * 32
    assert pair.l2_bytes == kernels(gemm, H100, True)["wgmma 128x256"].l2_bytes  # a multicast read, halves or not


def test_tiles_of_tcgen05_are_made_of_whole_instructions():
    found = gemm_operator("g", Gemm(4096, 4096, 4096), (10.0, 10.0), True, library=TUNED).candidates
    tiles = {tuple(map(int, c.label.split()[1].split("x"))) for c in found if c.label.startswith("tcgen05")}
    assert {(128, 256), (256, 128), (64, 64)} <= tiles
    assert all(any(side % 128 == 0 or side == 64 for side in tile) for tile in tiles)


def test_fp32_runs_on_cuda_cores():
    kernel = kernels(Gemm(512, 512, 512, 1, "fp32", "fp32", "fp32", "fp32"))["ffma 128x128"]
    assert (kernel.uses_tensor, kernel.fma_lanes, kernel.loop.tensor_fma) == (0, 1, 0)
    assert kernel.loop.fp32 * 32 * 8 * kernel.loop.repeats * kernel.ctas == 512**3
    assert ceil(512 / 16) == kernel.loop.repeats
    # Eight warps of 64 x 32 results, a lane 8 x 8: for every k two loads of A and two of B, a line of 128 B each; and
    # an eighth of both operands' blocks stored from registers.
    assert kernel.loop.shared_bytes == 16 * 4 * 128 + 16 * (128 + 128) * 4 / 8
    assert IMPLEMENTATIONS[int(kernel.implementation)] == "matrix_simt"


def test_the_early_library_has_costs_of_its_own():
    gemm = Gemm(4096, 4096, 4096)
    early = gemm_operator("gemm", gemm, H100, True, library=EARLY).candidates
    assert {c.kernel.implementation for c in early} == {implementation_index("matrix_early_hopper")}
    before = gemm_operator("gemm", gemm, A100, False, library=EARLY).candidates
    assert {c.kernel.implementation for c in before} == {implementation_index("matrix_early")}


def test_the_early_library_splits_warpgroup_tiles_by_powers_of_two():
    gemm = Gemm(64, 1024, 16384)
    found = [gemm_operator("g", gemm, c, w, library=EARLY).candidates for c, w in ((H100, True), (A100, False))]
    splits = [
        {c.label.partition(" split-k ")[2] or "1" for c in candidates if c.kernel.warpgroup == warpgroup}
        for candidates, warpgroup in zip(found, (1.0, 0.0), strict=True)
    ]
    assert splits[0] == {"1", "2", "4", "8", "16"}
    assert splits[1] > splits[0] | {"3", "6"}


@pytest.mark.parametrize(("m", "launched"), [(128, 1), (129, 2), (300, 4), (512, 4), (600, 6)])
def test_the_early_library_launches_whole_clusters(m, launched):
    gemm = Gemm(m, 4096, 4096)
    early, tuned = (
        {c.label: c.kernel for c in gemm_operator("g", gemm, H100, True, library=x).candidates}["wgmma 128x256"]
        for x in (EARLY, TUNED)
    )
    assert (early.ctas, early.cluster) == (launched * 4096 / 256, 2 if m > 128 else 1)
    assert tuned.ctas == ceil(m / 128) * 4096 / 256  # persistent kernels have no partly empty cluster
    assert early.l2_bytes == tuned.l2_bytes  # nothing is read for CTAs outside the product


@pytest.mark.parametrize(("capability", "k", "slow"), [(7.0, 2560, True), (7.0, 2048, False), (7.5, 2560, False)])
def test_volta_reads_an_operand_along_k_at_half_the_bandwidth(capability, k, slow):
    plain, along = (
        gemm_operator(
            "gemm",
            Gemm(7680, 16, k, a="fp16", b="fp16", compute="fp16", out="fp16", a_along_k=at),
            (capability, capability),
            False,
        )
        .candidates[0]
        .kernel
        for at in (False, True)
    )
    assert along.warm_bytes == plain.warm_bytes * (2.0 if slow else 1.0)
    assert along.cold_bytes == plain.cold_bytes
    assert along.l2_bytes == plain.l2_bytes


def test_a_space_of_warpgroup_instructions_tries_no_others_where_they_compute():
    def instructions(kind):
        found = gemm_operator("g", Gemm(64, 4096, 4096, 1, *(kind,) * 3), (9.0, 9.0), library=WARPGROUP_ALONE)
        return {c.label.split()[0] for c in found.candidates}

    assert instructions("bf16") == {"wgmma"}
    assert instructions("fp32") == {"ffma"}


def test_an_operand_that_volta_reads_slowly_takes_time_and_no_more_bytes():
    """Contiguous along k, rows no whole pages: DRAM is busy twice as long, with the same bytes, energy and roofline."""
    sheet = preset_sheet("v100_sxm2_16gb")
    gpu, model = sheet.record(), quick_jit(Amali())
    plain, slow = (
        gemm_operator(
            "g",
            Gemm(16, 5124, 2560, **dict.fromkeys(("a", "b", "compute", "out"), "fp16"), b_along_k=along),
            (7.0, 7.0),
            False,
        )
        .candidates[0]
        .kernel
        for along in (False, True)
    )
    fast, slower = model(plain, gpu), model(slow, gpu)
    assert slow.cold_bytes == 2 * plain.cold_bytes
    assert float(slower.cycles) > 1.2 * float(fast.cycles)
    assert float(slower.dram_bytes) == pytest.approx(float(fast.dram_bytes), rel=0.01)
    assert sheet_times(slow, sheet) == pytest.approx(sheet_times(plain, sheet))


def test_products_split_along_k_run_in_pairs_at_most():
    library = REPRESENTATIVE.on([8])
    found = gemm_operator("g", Gemm(2048, 4096, 14336), H100, library=library).candidates
    clusters = {split: {c.kernel.cluster for c in found if ("split-k" in c.label) == split} for split in (True, False)}
    assert max(clusters[True]) == 2 and max(clusters[False]) == 8
