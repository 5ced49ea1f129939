"""A row of a measured table as a vector kernel: families, distances, keys of a rotation."""

import numpy as np
import pytest

from dse.measured.protocol import find_protocol
from dse.measured.row_operator import family
from dse.measured.row_vector import distances_of, keys_of, of_large_tiles
from tests.measured.vector_rows import first, rows


def test_families_hold_runs_of_row_counts():
    frame = rows().assign(cols=4096.0)
    names = [family(r) for r in frame.assign(rows=np.arange(60) + 1000.0).itertuples()]
    assert len(set(names)) == 2
    assert names[0] == "silu_and_mul_4096_39"


def test_keys_of_a_rotation_by_heads_or_network():
    rope = rows("rope").assign(cols=2304.0)
    assert keys_of(first(rope)) == 0.0
    assert keys_of(first(rope.assign(group="vidur_Llama-2-70b-hf"))) == 256.0
    assert keys_of(first(rope.assign(heads=8.0, kv_heads=1.0))) == 256.0
    assert keys_of(first(rows())) == 0.0


@pytest.mark.parametrize("count, large", [(1152, True), (1200, False), (1280, False), (1296, True)])
def test_results_of_large_tiles_are_older(count, large):
    frame = rows(source="llmservingsim").assign(rows=float(count), cols=12800.0)
    row, way, sms = first(frame), find_protocol("llmservingsim"), 188.0
    assert of_large_tiles(row, sms) == large
    touched = 3 * 2 * count * 12800.0
    assert distances_of(row, way, sms) == (touched * (2.0 if large else 1.0), touched, 0.0)
    assert distances_of(row, find_protocol("vidur"), sms) == (touched, touched, 0.0)
    assert not of_large_tiles(first(frame.assign(op="rope")), sms)
    assert not of_large_tiles(row, 0.0)  # a GPU of which nothing is known
