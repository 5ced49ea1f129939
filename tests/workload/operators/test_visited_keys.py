"""Blocks of keys that a prompt's tiles visit, key by key, and by the steps of a kernel."""

from dataclasses import replace

import numpy as np
import pytest

from dse.workload.operators.attended import Attention
from dse.workload.operators.attention_library import Block, attention_libraries
from dse.workload.operators.visited_keys import key_blocks


def visited_by_hand(attention, block, group):
    """Blocks of keys that the queries of each tile see, key by key."""
    found = []
    for start in range(0, attention.queries * group, block.rows):
        rows = range(start, min(start + block.rows, attention.queries * group))
        seen = set()
        for row in rows:
            last = attention.prefix + row // group
            first = max(0, last + 1 - attention.window) if attention.window else 0
            seen |= {key // block.columns for key in range(int(first), int(last) + 1)}
        found.append(len(seen))
    return found


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(
    ("queries", "keys", "window"),
    [(512, 512, 0), (512, 512, 128), (512, 512, 129), (512, 512, 65), (300, 700, 64), (256, 1024, 192), (64, 64, 1)],
)
def test_tiles_visit_the_blocks_that_hold_a_key_which_one_of_their_queries_sees(queries, keys, window, group):
    attention, block = Attention(1, 8, 8, 64, queries, keys, window=window), Block(64, 64, 4)
    library = replace(attention_libraries()["fa2"], skips=True, skips_windows=True)
    assert key_blocks(attention, library, block, group).tolist() == visited_by_hand(attention, block, group)


@pytest.mark.parametrize(("queries", "window"), [(4096, 128), (1000, 0), (300, 256)])
def test_a_kernel_skips_whole_blocks_of_its_own_steps(queries, window):
    """Tiles of 64 queries whose kernel steps over 128 queries by 256 keys visit what those blocks hold."""
    attention = Attention(1, 8, 8, 64, queries, queries, window=window)
    library, tile, step = attention_libraries()["trtllm"], Block(64, 64, 4), Block(128, 256, 0)
    assert library.step(64, narrow=False) == step
    visited = key_blocks(attention, library, tile, 1.0, step)
    whole = key_blocks(attention, library, step, 1.0)
    assert np.array_equal(visited, np.repeat(whole * 4, 2)[: len(visited)])
    assert attention_libraries()["fa3"].step(64, narrow=False) is None
