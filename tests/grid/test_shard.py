"""Shards of a grid: they cover it once, in whole chunks, and are neither too many nor too long."""

from itertools import pairwise

import pytest

from dse.grid.part import Part
from dse.grid.shard import LONGEST, OF_PART, SHARDS, shards


@pytest.mark.parametrize("chunk", [1, 64, 1000])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 10_000, 1_234_567])
def test_they_cover_the_grid_once_in_whole_chunks(size: int, chunk: int) -> None:
    parts = shards(size, chunk)
    assert parts[0].start == 0 and parts[-1].stop == size
    assert all(a.stop == b.start and a.number + 1 == b.number for a, b in pairwise(parts))
    assert all((p.stop - p.start) % chunk == 0 for p in parts[:-1])
    assert all(0 < p.stop - p.start <= LONGEST * chunk for p in parts)


def test_a_small_grid_is_a_chunk_each_and_a_large_one_has_at_least_so_many() -> None:
    assert [p.stop - p.start for p in shards(250, 100)] == [100, 100, 50]
    for size in (SHARDS * 100, 3 * SHARDS * 100, 10**6):
        assert len(shards(size, 100)) >= SHARDS


@pytest.mark.parametrize("count", [1, 3, 48, 64, 1000])
def test_parts_of_a_large_grid_differ_by_a_quarter_at_most(count: int) -> None:
    grid = shards(10**8, 100, count)
    lengths = [len(Part(number, count).of(grid)) for number in range(1, count + 1)]
    assert min(lengths) >= OF_PART and max(lengths) - min(lengths) <= 1
    assert shards(250, 100, count) == shards(250, 100)
