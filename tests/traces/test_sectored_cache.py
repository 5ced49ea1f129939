"""Set hashes, and sectored caches with the least recently used line replaced."""

import random

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.traces.coalescing import coalesce
from dse.traces.sectored_cache import (
    BITWISE_XOR,
    FERMI,
    LINEAR,
    RESIDUE,
    bank_cycles,
    hash_index,
    make_caches,
    make_hash,
    slice_and_partition,
    touch,
)
from tests.traces.naive_caches import l2_set


@pytest.mark.parametrize("sets", [16, 32, 64])
def test_residue_hash(sets: int) -> None:
    h = make_hash(RESIDUE, sets, 128, "L2")
    rng = random.Random(sets)
    for address in [rng.getrandbits(48) for _ in range(200)]:
        assert hash_index(np.uint64(address), h.kind, h.bins, h.offset, h.residues) == l2_set(address, sets)
    with pytest.raises(InputError, match="no polynomial for 48"):
        make_hash(RESIDUE, 48, 128, "L2")
    with pytest.raises(InputError, match="Fermi"):
        make_hash(FERMI, 16, 128, "L2")


@pytest.mark.parametrize(("step", "cycles"), [(4, 1), (8, 2), (16, 4), (128, 32)])
def test_bank_cycles(step: int, cycles: int) -> None:
    """Coalesced 4, 8 and 16 bytes, and a stride of 128 bytes, on the RTX 2060."""
    lanes, out = np.arange(32, dtype=np.uint64) * np.uint64(step), np.empty(64, np.uint64)
    count = coalesce(lanes, min(step, 16), False, 4, out)
    assert bank_cycles(out[:count], make_hash(LINEAR, 4, 32, "L1 banks")) == cycles


def hits(accesses: list[tuple[int, int]], ways: int) -> list[bool]:
    """Return which accesses (line, sector) of a set with so many ways hit."""
    caches = make_caches(1, ways)
    return [bool(touch(ways, *caches[1:], 0, np.uint64(line), sector)) for line, sector in accesses]


def test_a_sector_is_there_once_it_was_asked_for_and_its_neighbour_is_not() -> None:
    assert hits([(7, 0), (7, 0), (7, 1), (7, 1), (7, 0)], 2) == [False, True, False, True, True]


def test_the_least_recently_used_line_makes_room() -> None:
    assert hits([(1, 0), (2, 0), (1, 0), (3, 0), (1, 0), (2, 0)], 2) == [False, False, True, False, True, False]


def test_a_line_that_comes_back_has_lost_its_sectors() -> None:
    assert hits([(1, 0), (1, 1), (2, 0), (1, 0), (1, 1)], 1) == [False, False, False, False, False]


@pytest.mark.parametrize("ways", [1, 3, 16])
def test_a_set_equals_an_ordered_dictionary(ways: int) -> None:
    rng = random.Random(ways)
    accesses = [(rng.randrange(2 * ways + 1), rng.randrange(4)) for _ in range(500)]
    plain: dict[int, set[int]] = {}
    expected = []
    for line, sector in accesses:
        sectors = plain.pop(line, set())
        expected.append(sector in sectors)
        plain[line] = sectors | {sector}
        if len(plain) > ways:
            del plain[next(iter(plain))]
    assert hits(accesses, ways) == expected


def test_slices_take_neighbouring_blocks_in_turn_and_hold_each_line_once() -> None:
    places = [slice_and_partition(np.uint64(a), np.uint64(a // 128 * 128), 3, 2) for a in range(0, 3 * 2**15, 128)]
    assert {place[0] for place in places} == set(range(6))
    assert len(set(places)) == len(places)
    assert [places[2 * block][0] // 2 for block in range(6)] == [0, 1, 2, 0, 1, 2]


def test_xor_and_linear_hashes_by_hand() -> None:
    linear, xor = (make_hash(kind, 16, 128, "L2") for kind in (LINEAR, BITWISE_XOR))
    address = np.uint64((0b1010 << 11) | (0b0110 << 7))
    index = [hash_index(address, h.kind, h.bins, h.offset, h.residues) for h in (linear, xor)]
    assert index == [0b0110, 0b0110 ^ 0b1010]
