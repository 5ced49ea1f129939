"""Matrix instructions: what each does, and which a library tries on which GPU."""

import pytest

from dse.hardware.presets import preset_sheet
from dse.workload.operators.matrix_instructions import (
    INSTRUCTIONS,
    NoInstructionError,
    instruction_fma,
    instructions_for,
)

BY_NAME = {instruction.name: instruction for instruction in INSTRUCTIONS}


def names(capability: float | None, dtype: str, warpgroup: bool = True) -> list[str]:
    """Return the classes that are tried on a GPU of one compute capability, None on any."""
    capabilities = None if capability is None else (capability, capability)
    return [instruction.name for instruction in instructions_for(capabilities, warpgroup, dtype)]


@pytest.mark.parametrize(
    ("name", "dtype", "sides"),
    [
        ("hmma_1688", "fp16", (16, 8, 8)),
        ("hmma_16816", "bf16", (16, 8, 16)),
        ("hmma_16816", "int8", (16, 8, 32)),
        ("hmma_16816", "fp64", (8, 8, 4)),
    ],
)
def test_a_warp_level_instruction_does_the_products_of_its_name(name: str, dtype: str, sides: tuple[int, ...]) -> None:
    m, n, k = sides
    assert instruction_fma(BY_NAME[name], dtype, columns=128) == m * n * k


@pytest.mark.parametrize(("dtype", "k"), [("tf32", 8), ("bf16", 16), ("fp8", 32), ("fp4", 64)])
def test_a_warpgroup_instruction_takes_32_bytes_of_k_for_four_warps(dtype: str, k: int) -> None:
    assert instruction_fma(BY_NAME["wgmma"], dtype, columns=128) == 64 * 128 * k / 4
    assert instruction_fma(BY_NAME["tcgen05"], dtype, columns=128) == 128 * 128 * k / 4


def test_it_takes_at_most_256_columns() -> None:
    assert instruction_fma(BY_NAME["wgmma"], "bf16", 512) == instruction_fma(BY_NAME["wgmma"], "bf16", 256)


@pytest.mark.parametrize(
    ("capability", "dtype", "expected"),
    [
        (6.1, "fp16", []),
        (7.0, "fp16", ["hmma_884"]),
        (7.5, "fp16", ["hmma_1688"]),
        (8.0, "bf16", ["hmma_16816"]),
        (8.0, "fp32", ["ffma"]),
        (9.0, "bf16", ["hmma_16816", "wgmma"]),
        (9.0, "fp64", ["hmma_16816"]),
        (10.0, "fp8", ["hmma_16816", "tcgen05"]),
        (12.0, "fp8", ["hmma_16816"]),
    ],
)
def test_a_generation_has_the_newest_of_its_own(capability: float, dtype: str, expected: list[str]) -> None:
    assert names(capability, dtype) == expected


def test_without_warpgroup_instructions_the_warp_level_ones_are_left() -> None:
    assert names(9.0, "bf16", warpgroup=False) == ["hmma_16816"]


def test_for_any_gpu_every_class_of_a_type_is_tried() -> None:
    assert names(None, "fp16") == ["hmma_884", "hmma_1688", "hmma_16816", "wgmma", "tcgen05"]


def test_a_range_of_gpus_has_the_newest_of_the_oldest_and_all_newer_ones() -> None:
    found = [instruction.name for instruction in instructions_for((7.5, 9.0), True, "fp16")]
    assert found == ["hmma_1688", "hmma_16816", "wgmma"]


def test_who_computes_in_a_type_without_an_instruction_is_told_what_the_gpus_can() -> None:
    error = NoInstructionError("qkv", "bf16", "tuned")
    assert str(error) == "qkv: no matrix instruction of tuned of these GPUs computes in bf16"
    sentence = error.on([preset_sheet("v100_sxm2_16gb")])
    assert "Tesla V100" in sentence and sentence.endswith("can in fp32, fp16")
