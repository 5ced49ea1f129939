"""A warp's lanes as memory accesses, by hand."""

import numpy as np
import pytest

from dse.traces.coalescing import coalesce, coalesce_atomic


def test_atomics_pack_lanes_without_overlap() -> None:
    out = np.empty(64, np.uint64)
    lanes = np.array([4 * (lane % 4) for lane in range(32)], np.uint64)
    assert coalesce_atomic(lanes, 4, 4, out) == 8
    assert coalesce_atomic(np.array([30], np.uint64), 4, 4, out) < 0


@pytest.mark.parametrize(
    ("lanes", "width", "expected"),
    [
        ([0, 4, 8], 1, [0]),
        ([64], 2, [64]),
        ([96], 2, [96]),
        ([0, 40], 2, [0]),
        ([96], 4, [96]),
        ([64, 96], 4, [64]),
        ([0, 96], 4, [0]),
        ([32], 8, [32]),
        ([130, 300], 4, [128, 288]),
    ],
)
def test_segments_of_a_cache_without_sectors(lanes: list[int], width: int, expected: list[int]) -> None:
    out = np.empty(64, np.uint64)
    count = coalesce(np.array(lanes, np.uint64), width, False, 1, out)
    assert out[:count].tolist() == expected


def accesses(lanes: list[int], width: int, local: bool = False) -> list[int]:
    """Return the accesses of a load in a cache with sectors of 32 bytes."""
    out = np.empty(64, np.uint64)
    return out[: coalesce(np.array(lanes, np.uint64), width, local, 4, out)].tolist()


def test_a_warp_s_neighbouring_words_are_four_sectors() -> None:
    assert accesses([4 * lane for lane in range(32)], 4) == [0, 32, 64, 96]
    assert accesses([4 * lane for lane in reversed(range(32))], 4) == [0, 32, 64, 96]
    assert accesses([16 * lane for lane in range(32)], 16) == list(range(0, 512, 32))


def test_lanes_that_read_one_word_read_one_sector_and_none_read_none() -> None:
    assert accesses([100] * 32, 4) == [96]
    assert accesses([], 4) == []


def test_a_lane_that_straddles_touches_both_sectors_but_not_in_local_memory() -> None:
    assert accesses([28], 8) == [0, 32]
    assert accesses([28], 8, local=True) == [0]


def test_atomics_on_one_word_are_an_access_each() -> None:
    out = np.empty(64, np.uint64)
    assert coalesce_atomic(np.full(5, 64, np.uint64), 4, 4, out) == 5
    assert out[:5].tolist() == [64] * 5
    assert coalesce_atomic(np.arange(0, 32, 4, dtype=np.uint64), 4, 4, out) == 1
