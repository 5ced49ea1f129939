"""One iteration of a product's main loop, and its end: counts and bytes by hand."""

import pytest

from dse.workload.operators.gemm_main_loop import (
    ALONE,
    CLUSTERS,
    Tile,
    Types,
    epilogue,
    l2_bytes,
    main_loop,
    registers,
    sharing_pair,
    stage_bytes,
)
from dse.workload.operators.matrix_instructions import MMA_884, TCGEN05, instructions_for

BF16 = Types("bf16", "bf16", "bf16")
[HMMA] = instructions_for((8.0, 8.0), False, "bf16")
WGMMA = next(i for i in instructions_for((9.0, 9.0), True, "bf16") if i.warpgroup)
SQUARE = Tile(128, 128, 4, 32, 4)


def test_a_warp_level_iteration():
    loop = main_loop(BF16, HMMA, SQUARE, 7, 1)
    assert loop.repeats == 7
    assert loop.tensor_fma == 128 * 128 * 32 / 4  # 64 HMMA.16816 of 2048 FMA a warp
    assert loop.load_bytes == (128 + 128) * 32 * 2 / 4
    fragments = (64 + 64) * 32 * 2  # a warp's own 64 x 64 of the tile
    assert loop.shared_bytes == fragments  # asynchronous copies write beside the reads
    assert loop.instructions == 64 + fragments / 512 + loop.load_bytes / 512 + loop.int32 + 2


def test_before_asynchronous_copies_every_byte_is_stored_from_registers():
    fp16 = Types("fp16", "fp16", "fp16")
    loop = main_loop(fp16, MMA_884, SQUARE, 1, 1)
    assert loop.shared_bytes == (64 + 64) * 32 * 2 + loop.load_bytes


def test_a_warpgroup_iteration():
    loop = main_loop(BF16, WGMMA, Tile(128, 256, 8, 64, 4), 1, 1)
    assert loop.tensor_fma == 128 * 256 * 64 / 8
    reads = 2 * 4 * (64 + 256) * 32  # two warpgroups, four steps of 32 bytes of k, both operands
    assert loop.shared_bytes == reads / 8
    assert loop.shared_waits == loop.tensor_waits == 0


def test_narrow_weights_are_widened():
    narrow = main_loop(Types("bf16", "int4", "bf16"), HMMA, SQUARE, 1, 1)
    assert main_loop(BF16, HMMA, SQUARE, 1, 1).fp32 == 0
    assert narrow.fp32 == 1.5 * 128 * 32 / (32 * 4)  # 1.5 an element, shared by 128 lanes


@pytest.mark.parametrize(("rows", "pair"), [(128, 2), (64, 1)])
def test_a_pair_holds_one_copy_of_the_columns_where_its_rows_are_whole_instructions(rows, pair):
    tile = Tile(rows, 256, 4, 64, 4)
    assert sharing_pair(TCGEN05, tile, CLUSTERS[2]) == pair
    assert sharing_pair(WGMMA, tile, CLUSTERS[2]) == 1
    assert stage_bytes(BF16, tile, pair) == (rows + 256 / pair) * 64 * 2


def test_a_cluster_reads_the_columns_once():
    assert l2_bytes(BF16, SQUARE, 10, ALONE) == 10 * 32 * (128 + 128) * 2
    assert l2_bytes(BF16, SQUARE, 10, CLUSTERS[2]) == 10 * 32 * (128 + 64) * 2


def test_accumulators_stand_in_registers_or_tensor_memory():
    assert registers(HMMA, SQUARE) == 128 + 48
    assert registers(TCGEN05, SQUARE) == 48


def test_every_result_is_stored_once():
    assert epilogue(SQUARE, 2.0).store_bytes * 4 == 128 * 128 * 2
