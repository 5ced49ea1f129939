"""Attention libraries: their tiles by head size, their decode kernels, and which of them a measured row ran."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.workload.operators.attention_library import (
    DEFAULTS,
    XQA_GROUPS,
    Block,
    attention_libraries,
    library_of,
    names_library,
)

FA2 = attention_libraries()["fa2"]
TWO = replace(FA2, tiles={("prefill", 64): Block(128, 128, 4), ("prefill", 128): Block(128, 64, 8)})


@pytest.mark.parametrize(("head", "columns"), [(32, 128), (64, 128), (80, 64), (128, 64), (256, 64)])
def test_a_head_takes_the_tile_of_the_next_size_or_of_the_largest(head: int, columns: int) -> None:
    assert TWO.block("prefill", head).columns == columns


def test_a_library_with_two_decode_kernels_packs_a_group_that_fits() -> None:
    both = replace(FA2, tiles=FA2.tiles | {("decode_head", 128): Block(1, 64, 4)})
    assert [both.decode_phase(group) for group in (1, 2, XQA_GROUPS, XQA_GROUPS + 1)] == [
        "decode_head",
        "decode",
        "decode",
        "decode_head",
    ]
    assert FA2.decode_phase(1) == "decode"


@pytest.mark.parametrize("name", attention_libraries())
def test_every_library_has_tiles_for_both_phases(name: str) -> None:
    library = attention_libraries()[name]
    assert {"prefill", "decode"} <= {phase for phase, _ in library.tiles}
    assert library.instructions in ("warp", "warpgroup", "any")
    assert library.title and library.least_blocks >= 1


def test_where_nothing_is_said_the_library_is_the_generation_s_own() -> None:
    assert not names_library("", "nobody", warpgroup=True)
    assert [library_of("", "nobody", warpgroup).name for warpgroup in (False, True)] == list(DEFAULTS)


def test_a_library_without_a_model_is_refused_with_its_reason() -> None:
    row = next(row for row in read_table("attention/measured.csv") if not row["library"])
    with pytest.raises(InputError) as told:
        library_of(row["words"], row["measured_by"], row["warpgroup"] != "0", row["kind"] == "latent")
    assert str(told.value) == row["why_not"] != ""
