"""Images and sounds as patches and tokens, held to what publishers say of their processors."""

import pytest

from dse.workload.networks.images import Images
from dse.workload.networks.network import networks


@pytest.mark.parametrize(
    ("name", "width", "height", "patches", "tokens"),
    [
        ("qwen2_5_vl_7b", 1036, 1036, 5476, 1369),  # 28 x 28 pixels a token (Qwen2.5-VL's card)
        ("qwen2_5_vl_7b", 224, 224, 256, 64),  # 64 tokens and two marks, 66 in all (Qwen2-VL's report)
        ("qwen3_vl_8b", 1024, 768, 3072, 768),  # 32 x 32 pixels a token (Qwen3-VL's card)
        ("gemma_3_27b", 1920, 1080, 4096, 256),  # 896 x 896 pixels and 256 tokens, whatever the image (its report)
        ("gemma_4_26b_a4b", 960, 672, 2520, 280),  # 280 tokens at most by default (its card)
        ("llama4_scout", 336, 336, 577, 144),  # one tile
    ],
)
def test_tokens_of_an_image_are_the_published_ones(name, width, height, patches, tokens):
    grid = networks()[name].encoder.source.grid(width, height)
    assert (grid.pieces * grid.patches, grid.tokens) == (patches, tokens)


@pytest.mark.parametrize(
    ("width", "height", "pieces"), [(336, 336, 1), (672, 336, 3), (1344, 1344, 17), (5000, 5000, 17)]
)
def test_a_large_image_becomes_tiles_and_one_of_the_whole(width, height, pieces):
    assert networks()["llama4_scout"].encoder.source.grid(width, height).pieces == pieces


@pytest.mark.parametrize(("seconds", "pieces"), [(1, 1), (30, 1), (31, 2), (120, 4)])
def test_sound_is_cut_into_pieces_of_thirty_seconds_of_375_tokens(seconds, pieces):
    grid = networks()["voxtral_mini_3b"].encoder.source.grid(seconds)
    assert (grid.pieces, grid.patches, grid.tokens) == (pieces, 1500, pieces * 375)


def test_the_smallest_image_is_a_token():
    assert Images(14, 2, 588, "nearest").grid(1, 1).tokens == 1


@pytest.mark.parametrize(
    ("width", "height", "pieces", "tokens"),
    [(336, 336, 5, 757), (1000, 1000, 5, 757), (1344, 336, 5, 745), (336, 1344, 5, 781), (1600, 900, 5, 757)],
)
def test_an_image_is_enlarged_to_as_many_crops_as_there_may_be(width, height, pieces, tokens):
    """Four crops of 144 tokens, one of the whole, and what ends rows: 757 of a square (Phi-3.5-vision's processor)."""
    grid = Images(14, 2, 588, "crops", side=336, most=4, class_tokens=1).grid(width, height)
    assert (grid.pieces, grid.tokens, grid.patches) == (pieces, tokens, 577)
