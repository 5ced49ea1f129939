"""Cliffs of miss-rate curves: the paper's one between doublings, several, and sizes that are not doublings."""

import pytest

from dse.scaling.cliffs import ambiguous_steps, find_cliffs


@pytest.mark.parametrize(
    ("sizes", "mpki", "cliffs"),
    [
        ((8, 16, 32), (4, 4, 4), []),
        ((8, 16, 32), (4, 2, 1), []),  # exactly half is no cliff: more than 2x
        ((8, 16, 32), (4, 4, 1.9), [(16, 32)]),
        ((8, 16, 32, 64, 128), (9, 4, 4, 1, 1), [(8, 16), (32, 64)]),
        ((8, 16, 32), (9, 4, 1), [(8, 16), (16, 32)]),  # two that touch stay two
        ((64, 96, 128), (6, 3.2, 1.6), [(64, 128)]),  # no step falls by 2x, the doubling does
        ((64, 96, 128), (6, 5.9, 1.6), [(96, 128)]),  # the shortest stretch that holds it
        ((16, 64, 256), (6, 5, 1.2), [(64, 256)]),  # steps of four: more than 2x a doubling is one cliff
        ((16, 64, 256), (6, 5, 1.25), []),  # exactly 2x a doubling
        ((8, 16, 128), (64, 60, 25), []),  # 2.4x in three doublings: as the next, with sizes left out
        ((8, 16, 32, 64, 128), (64, 60, 45, 33, 25), []),
        ((8, 16, 128), (64, 60, 0), [(16, 128)]),
        ((8, 16), (3, 0), [(8, 16)]),
        ((8, 16), (1, 5), []),  # a rise
    ],
)
def test_cliffs(sizes, mpki, cliffs):
    assert [(c.before, c.after) for c in find_cliffs(sizes, mpki)] == cliffs
    assert all(c.f_mem is None for c in find_cliffs(sizes, mpki))


def test_long_steps_in_which_a_cliff_cannot_be_seen():
    assert ambiguous_steps((8, 16, 128, 256), (64, 60, 25, 1)) == ((16, 128),)  # the doubling is told
    assert ambiguous_steps((8, 32, 128, 512), (64, 60, 14, 7)) == ()  # a cliff by its rate; no fall by more than 2x
