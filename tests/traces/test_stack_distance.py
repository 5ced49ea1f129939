"""Miss-rate curves in one pass against a plain sectored LRU cache, simulated anew for every size."""

from collections import OrderedDict
from itertools import pairwise

import numpy as np
import pytest

from dse.traces import stack_distance
from dse.traces.curve_sizes import LINE_BYTES, SIZES
from dse.traces.stack_distance import FIRST, STORE, StackDistances, make_histograms, make_requests


def plain_misses(addresses: list[int], lines: int) -> list[bool]:
    """Return which accesses miss a fully associative LRU cache of so many lines with 32-byte sectors."""
    cache: OrderedDict[int, set[int]] = OrderedDict()
    missed = []
    for address in addresses:
        line, sector = address // 128, address // 32 % 4
        missed.append(sector not in cache.get(line, ()))
        cache.setdefault(line, set()).add(sector)
        cache.move_to_end(line)
        if len(cache) > lines:
            cache.popitem(last=False)
    return missed


def stream(seed: int, instructions: int, lines: int) -> tuple[list[int], list[int], list[int]]:
    """Return addresses, rows and flags of random instructions of 1 to 6 ascending sectors."""
    rng = np.random.default_rng(seed)
    addresses, rows, flags = [], [], []
    for _ in range(instructions):
        # Near lines mostly, far ones now and then, so that every size of the curve matters.
        base = int(rng.integers(8 if rng.random() < 0.5 else lines)) * 128
        sectors = np.sort(rng.choice(24, int(rng.integers(1, 7)), replace=False))
        row, store = int(rng.integers(3)), int(rng.random() < 0.3) * STORE
        for k, sector in enumerate(sectors):
            addresses.append(base + 32 * int(sector))
            rows.append(row)
            flags.append(store | (FIRST if k == 0 else 0))
    return addresses, rows, flags


def fed(addresses: list[int], rows: list[int], flags: list[int], pieces: int):
    """Return the distances and histograms of a stream that comes in pieces, cut between instructions."""
    distances, histograms = StackDistances(), make_histograms(3)
    starts = [i for i, flag in enumerate(flags) if flag & FIRST]
    cuts = [starts[len(starts) * k // pieces] for k in range(pieces)] + [len(flags)]
    for a, b in pairwise(cuts):
        requests = make_requests(b - a)
        requests.address[:], requests.row[:], requests.flags[:] = addresses[a:b], rows[a:b], flags[a:b]
        requests.used[0] = b - a
        distances.count(requests, histograms)
        assert requests.used[0] == 0
    return distances, histograms


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_cache_simulated_for_every_size(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = np.array([1, 2, 3, 5, 8, 20, 50, 200]) * LINE_BYTES
    monkeypatch.setattr(stack_distance, "SIZES", sizes)
    addresses, rows, flags = stream(seed, 1500, 300)
    distances, histograms = fed(addresses, rows, flags, pieces=1 + seed)
    assert distances.footprint_bytes == 128 * len({address // 128 for address in addresses})
    instruction = np.cumsum([flag & FIRST for flag in flags]) - 1
    for column, size in enumerate(sizes // LINE_BYTES):
        missed = np.array(plain_misses(addresses, int(size)))
        for row in range(3):
            mine = missed & (np.array(rows) == row)
            assert histograms.sectors[row, column + 1 :].sum() == mine.sum()
            assert histograms.instructions[row, column + 1 :].sum() == len(set(instruction[mine]))
        for store in (0, 1):
            mine = missed & (np.array(flags) // STORE == store)
            assert histograms.kernel[store, column + 1 :].sum() == mine.sum()
    lines = {(i, a // 128) for i, a in zip(instruction.tolist(), addresses, strict=True)}
    by_row = dict(zip(instruction.tolist(), rows, strict=True))
    assert histograms.lines.tolist() == [sum(by_row[i] == row for i, _ in lines) for row in range(3)]


def test_tables_grow_and_the_order_is_renumbered() -> None:
    """Many times the lines and accesses that the tables first have room for: a cyclic walk misses below its size."""
    lines, rounds = 5000, 7
    addresses = [128 * line for _ in range(rounds) for line in range(lines)]
    distances, histograms = fed(addresses, [0] * len(addresses), [FIRST] * len(addresses), pieces=3)
    assert distances.lines == lines
    holds = int(np.searchsorted(SIZES, lines * LINE_BYTES))
    assert histograms.sectors[0, -1] == lines
    assert histograms.sectors[0, holds] == lines * (rounds - 1)
    assert histograms.sectors[0].sum() == lines * rounds
