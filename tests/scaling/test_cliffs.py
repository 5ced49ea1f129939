"""Cliffs of miss-rate curves: the paper's one between doublings, several, and sizes that are not doublings."""

import pytest

from dse.scaling.cliffs import find_cliffs


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
        ((16, 64, 256), (6, 5, 2), [(64, 256)]),  # steps of four: a fall within is one cliff
        ((8, 16), (3, 0), [(8, 16)]),
        ((8, 16), (1, 5), []),  # a rise
    ],
)
def test_cliffs(sizes, mpki, cliffs):
    assert [(c.before, c.after) for c in find_cliffs(sizes, mpki)] == cliffs
    assert all(c.f_mem is None for c in find_cliffs(sizes, mpki))
