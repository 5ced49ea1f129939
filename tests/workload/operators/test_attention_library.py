"""Attention libraries: their tiles by head size, their decode kernels, and which of them a measured row ran."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.workload.operators.attention_library import (
    DEFAULTS,
    LATENT,
    LATENT_DECODE,
    PLAIN,
    XQA_GROUPS,
    Block,
    attention_libraries,
    kernels_with,
    latent_kinds,
    latent_library,
    library_of,
    names_library,
)
from dse.workload.operators.matrix_instructions import MMA_16816, TCGEN05

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
    phases = {phase for phase, _ in library.tiles}
    assert {"prefill"} <= phases and ("decode" in phases or library.latent)
    assert library.instructions in ("warp", "warpgroup", "any")
    assert library.title and library.least_blocks >= 1


def test_where_nothing_is_said_the_library_is_the_generation_s_own() -> None:
    assert not names_library("", "nobody", warpgroup=True)
    assert [library_of("", "nobody", warpgroup).name for warpgroup in (False, True)] == list(DEFAULTS)


def test_a_library_without_a_model_is_refused_with_its_reason() -> None:
    row = next(row for row in read_table("attention/measured.csv") if not row["library"])
    with pytest.raises(InputError) as told:
        library_of(row["words"], row["measured_by"], row["warpgroup"] != "0", (row["kind"] or PLAIN,))
    assert str(told.value) == row["why_not"] != ""


@pytest.mark.parametrize(
    ("notes", "warpgroup", "decodes", "library"),
    [
        ("impl=trtllm-1.3.0rc20/default", True, True, "trtllm_mla"),
        ("impl=sglang-0.5.14/trtllm_mla", True, False, "trtllm_gen_mla"),
        ("impl=sglang-0.5.14/flash_attention", True, True, "sglang_mla"),
        ("impl=trtllm-1.3.0rc20/default", False, False, "trtllm_warp_mla"),
        ("impl=trtllm-1.0.0/default", False, True, "trtllm_warp_mla"),
        ("impl=sglang-0.5.14/triton", False, True, "sglang"),
        ("", True, True, "trtllm_mla"),
        ("", False, False, "trtllm_warp_mla"),
    ],
)
def test_latent_attention_has_libraries_of_its_own(notes: str, warpgroup: bool, decodes: bool, library: str) -> None:
    assert library_of(notes, "aiconfigurator", warpgroup, latent_kinds(decodes, narrow=False)).name == library


def test_a_cache_in_eight_bits_that_sglang_widens_on_hopper_is_refused() -> None:
    notes = "impl=sglang-0.5.14/flash_attention"
    with pytest.raises(InputError, match="passes of its own"):
        library_of(notes, "aiconfigurator", True, latent_kinds(decodes=True, narrow=True))
    assert library_of(notes, "aiconfigurator", True, latent_kinds(decodes=False, narrow=True)).name == "sglang_mla"
    assert LATENT_DECODE in latent_kinds(decodes=True, narrow=True) and LATENT in latent_kinds(False, False)


def test_blackwell_runs_one_library_of_latent_attention_whatever_runs_elsewhere() -> None:
    of_hopper = attention_libraries()["sglang_mla"]
    assert latent_library("tcgen05", of_hopper, absorbed=True).name == "trtllm_gen_mla"
    assert latent_library("wgmma", of_hopper, absorbed=True) is of_hopper
    assert latent_library("hmma_16816", None, absorbed=True).name == "sglang"


@pytest.mark.parametrize(
    ("name", "head", "filled"), [("fa3", 72, 96), ("trtllm", 80, 128), ("fa2", 64, 64), ("fa2", 512, 512)]
)
def test_a_head_is_filled_up_to_the_size_that_a_kernel_is_built_for(name: str, head: int, filled: int) -> None:
    assert attention_libraries()[name].filled(head) == filled


def ranges(capabilities: tuple[float, float] | None) -> list[tuple[str, float, float]]:
    """What runs FlashAttention 2's warp-level kernels, and on GPUs of which compute capability."""
    found = kernels_with(MMA_16816, FA2, capabilities)
    return [(k.library.name, k.instruction.compute_capability, k.instruction.capability_end) for k in found]


def test_successors_share_the_gpus_out_with_the_library_they_follow() -> None:
    assert ranges((8.0, 8.0)) == [("fa2", 8.0, 8.9)]
    assert ranges((8.9, 8.9)) == [("fa2_gddr_today", 8.9, 9.0)]
    every = ranges(None)
    assert [name for name, *_ in every] == ["fa2", "fa2_gddr_today"] * 2
    assert [start for _, start, _ in every[1:]] == [end for _, _, end in every[:-1]]  # no gap, no overlap
    assert [k.library.name for k in kernels_with(TCGEN05, FA2, None)] == ["fa2"]
