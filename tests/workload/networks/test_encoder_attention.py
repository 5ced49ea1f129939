"""Attention of encoders: windows that the edge cuts, and what it keeps."""

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.encoder_attention import EncoderAttention
from dse.workload.networks.images import Grid


@pytest.mark.parametrize(
    ("rows", "columns", "attended"), [(32, 32, (16, 64)), (8, 12, (2, 48)), (74, 74, (100, 54.76)), (2, 2, (1, 4))]
)
def test_windows_of_an_image(rows, columns, attended):
    made = EncoderAttention(16, 80, True, False, 8, Grid(1, rows, columns, 1))
    assert made.attended() == pytest.approx(attended)


def test_without_windows_every_patch_attends_all_and_nothing_is_kept():
    made = EncoderAttention(16, 80, True, False, 0, Grid(1, 24, 24, 144, 1))
    assert made.attended() == (1, 577)
    assert made.cache_bytes(1000, precision("test", "bf16"), 1) == 0
    assert made.parameters(1280) == 4 * 1280 * 1280
    assert (made.kind, EncoderAttention(1, 64, True, False, 8).kind) == ("all patches", "windows of 8 x 8 patches")
