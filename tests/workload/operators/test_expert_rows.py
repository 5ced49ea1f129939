"""Rows of a mixture's experts: distinct experts, tiles and the busiest rank, counted by hand or drawn."""

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.workload.operators.expert_rows import ExpertRows, checked_routing
from dse.workload.operators.gemm import Gemm, gemm_operator


def test_balanced_experts_have_as_many_rows_each():
    rows = ExpertRows(512, 64, 8, 4, "balanced")
    assert (rows.local, rows.rows, rows.distinct, rows.mean) == (16, 1024, 16, 64)
    assert (rows.tiles(64), rows.tiles(128), rows.tiles(48)) == (16, 16, 32)
    assert ExpertRows(1, 64, 8, routing="balanced").distinct == 8


def test_distinct_experts_of_tokens_that_choose_alike():
    rows = ExpertRows(32, 256, 8, 8)
    assert rows.rows == 32
    assert rows.distinct == pytest.approx(32 * (1 - (1 - 8 / 256) ** 32))


def test_tiles_of_tokens_that_choose_alike_are_those_that_are_drawn():
    random = np.random.default_rng(1)
    drawn = np.ceil(random.binomial(300, 8 / 64, size=(20_000, 64)) / 16).sum(axis=1).mean()
    assert ExpertRows(300, 64, 8).tiles(16) == pytest.approx(drawn, rel=2e-3)


def test_a_power_law_fills_the_busiest_rank_and_keeps_the_sum():
    whole = ExpertRows(1024, 128, 8, 1, "power_law_1.2")
    assert whole.rows == 1024 * 8
    busiest = ExpertRows(1024, 128, 8, 8, "power_law_1.2")
    mild = ExpertRows(1024, 128, 8, 8, "power_law_1.01")
    assert busiest.rows > 1024 and mild.rows > 1024
    assert busiest.rows <= 1024 * 8


@pytest.mark.parametrize("routing", ["balanced", "uniform", "power_law_1.2"])
def test_larger_tiles_are_never_more(routing):
    rows = ExpertRows(777, 128, 8, 2, routing)
    tiles = [rows.tiles(side) for side in (16, 32, 64, 128, 256)]
    assert tiles == sorted(tiles, reverse=True)
    assert tiles[-1] >= rows.distinct - 1e-9


def test_other_routings_are_refused():
    for wrong in ("power_law_", "random", "power_law_x"):
        with pytest.raises(InputError, match="give balanced, uniform or power_law_EXPONENT"):
            checked_routing("workload", wrong)
    assert checked_routing("workload", "power_law_1.2") == "power_law_1.2"


def test_a_grouped_product_computes_the_rows_and_reads_each_expert_once():
    rows = ExpertRows(2048, 64, 8, 1, "balanced")
    gemm = Gemm(rows.mean, 2048, 4096, rows.distinct, groups=rows)
    assert gemm.fma == 2048 * 8 * 2048 * 4096
    assert gemm.b_bytes == 64 * 2048 * 4096 * 2
    alone = Gemm(256, 2048, 4096, 64)
    for grouped, plain in zip(
        gemm_operator("grouped", gemm).candidates, gemm_operator("plain", alone).candidates, strict=False
    ):
        assert grouped.kernel.cold_bytes == plain.kernel.cold_bytes


@pytest.mark.parametrize("routing", ["balanced", "uniform", "power_law_1.2"])
def test_the_slowest_rank_has_a_row_at_least(routing):
    """Four tokens to eight of 256 experts on 128 ranks: a quarter of a row in the mean, and some rank waits for one."""
    rows = ExpertRows(4, 256, 8, 128, routing)
    assert rows.rows >= 1
    assert rows.distinct >= 1
    assert rows.tiles(64) >= 1
