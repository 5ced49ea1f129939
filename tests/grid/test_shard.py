"""Shards of a grid: they cover it once, in whole chunks, and are neither too many nor too long."""

from itertools import pairwise

import pytest

from dse.grid.shard import LONGEST, PORTIONS, portions


@pytest.mark.parametrize("chunk", [1, 64, 1000])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 10_000, 1_234_567])
def test_they_cover_the_grid_once_in_whole_chunks(size: int, chunk: int) -> None:
    found = portions(size, chunk)
    assert found[0].start == 0 and found[-1].stop == size
    assert all(a.stop == b.start and a.number + 1 == b.number for a, b in pairwise(found))
    assert all((p.stop - p.start) % chunk == 0 for p in found[:-1])
    assert all(0 < p.stop - p.start <= LONGEST * chunk for p in found)


def test_a_small_grid_is_a_chunk_each_and_a_large_one_has_at_least_so_many() -> None:
    assert [p.stop - p.start for p in portions(250, 100)] == [100, 100, 50]
    for size in (PORTIONS * 100, 3 * PORTIONS * 100, 10**6):
        assert len(portions(size, 100)) >= PORTIONS
