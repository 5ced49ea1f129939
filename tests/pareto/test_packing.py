"""Generations as texts: what comes out is what went in."""

import json

import numpy as np
import pytest

from dse.pareto.packing import packed, unpacked


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_it_comes_back_to_the_last_bit(count: int) -> None:
    rng = np.random.default_rng(count)
    index, entrants = rng.integers(0, 2**62, 3 * count), rng.integers(0, 2**62, count)
    table = rng.normal(size=(count, 4)) * 10.0 ** rng.integers(-300, 300, (count, 4))
    texts = json.loads(json.dumps(packed(index, entrants, table)))
    for back, array in zip(unpacked(texts, 4), (index, entrants, table), strict=True):
        np.testing.assert_array_equal(back, array)
        assert back.shape == array.shape


def test_designs_of_a_kind_take_little_room() -> None:
    texts = packed(np.arange(10_000), np.zeros(0, int), np.zeros((0, 3)))
    assert len(texts["designs"]) < 8 * 10_000 / 2
