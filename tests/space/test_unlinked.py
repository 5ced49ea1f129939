"""What a space turns without what belongs to it: the sentences, where they stand, and what to link."""

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from dse.grid.estimate import estimate
from dse.reports.show.terminal import print_check
from dse.space.space import Space, load_space, space_from_mapping
from dse.space.unlinked import unlinked_headline, unlinked_notes
from dse.workload.parse import load_workload

SPACE: dict[str, Any] = {
    "base": "h100_sxm",
    "axes": {"tensor_fma_bf16": [512, 768]},
    "workloads": {"prefill": "llama3_8b:phase=prefill,batch=1,prompt=2048"},
    "objectives": [{"value": "prefill.ttft_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
}
LINKS = {
    "tensor_fma_fp16": "tensor_fma_bf16",
    "tensor_fma_tf32": "tensor_fma_bf16 * 0.5",
    "tensor_fma_fp8": "tensor_fma_bf16 * 2",
    "tensor_fma_int8": "tensor_fma_bf16 * 2",
}


def space(**changes: Any) -> Space:
    return space_from_mapping(SPACE | changes, "space.toml", "space")


def test_a_rate_alone_is_told_what_to_link() -> None:
    (note,) = unlinked_notes(space())
    assert note.startswith("tensor_fma_bf16 moves and tensor_fma_")
    assert all(f'{name} = "{link}"' in note for name, link in LINKS.items())


def test_the_headline_names_each_once() -> None:
    assert unlinked_headline(space(links=LINKS)) == []
    (headline,) = unlinked_headline(space(axes={"dram_bandwidth_gbs": [3350, 4800], "boost_clock_mhz": [1500, 1980]}))
    assert headline.startswith("Careful: dram_bus_bits, l2_clock_mhz stay while what they follow moves")


def test_an_axis_that_never_leaves_the_base_moves_nothing() -> None:
    others = {"sm_count": [120, 132]}
    assert unlinked_notes(space(axes=others | {"tensor_fma_bf16": [512], "boost_clock_mhz": [1980]})) == []
    assert unlinked_notes(space(axes=others | {"tensor_fma_bf16": [768]})) != []


def test_its_links_are_read_and_leave_nothing_to_say() -> None:
    assert unlinked_notes(space(links=LINKS)) == []
    few = {name: link for name, link in LINKS.items() if name != "tensor_fma_int8"}
    (note,) = unlinked_notes(space(links=few))
    assert "and tensor_fma_int8 stays" in note


def test_products_of_another_type_are_named() -> None:
    fp8 = load_workload("gpt2_xl:phase=decode,batch=8,context=512,dtype=fp8", name="decode")
    links = {name: link for name, link in LINKS.items() if name != "tensor_fma_fp8"}
    notes = unlinked_notes(replace(space(links=links), workloads=(fp8,)))
    assert "the products of decode run in fp8: link tensor_fma_fp8 to it" in notes[-1]


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ({"dram_bandwidth_gbs": [3350, 4800]}, "dram_bus_bits does not"),
        ({"dram_bandwidth_gbs": [3350, 4800], "dram_bus_bits": [5120, 6144]}, ""),
        ({"boost_clock_mhz": [1500, 1980]}, "boost_clock_mhz moves but l2_clock_mhz does not"),
        (
            {"l2_slice_bytes_per_cycle": [64, 128]},
            "l2_crossbar_bytes_per_cycle does not",
        ),
        ({"l2_slice_bytes_per_cycle": [64, 128], "l2_crossbar_bytes_per_cycle": [36, 72]}, ""),
        ({"sm_count": [120, 132]}, ""),
    ],
)
def test_interfaces_and_clocks(axes: dict[str, list[float]], told: str) -> None:
    notes = unlinked_notes(space(axes=axes))
    assert told in " ".join(notes) and bool(notes) == bool(told)


def test_a_check_tells_them_before_anything_runs() -> None:
    alone = space()
    written = StringIO()
    print_check(alone, estimate(alone), Console(width=4000, file=written))
    assert set(unlinked_notes(alone)) <= set(estimate(alone).warnings)
    assert unlinked_notes(alone)[0] in written.getvalue()


@pytest.mark.parametrize("name", ["h100_tensor_core", "h100_successor", "latent_tensor_core"])
def test_shipped_spaces_of_tensor_rates_link_them(name: str) -> None:
    assert not [note for note in unlinked_notes(load_space(name)) if "multipliers" in note]
