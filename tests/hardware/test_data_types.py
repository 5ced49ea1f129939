"""The table of data types: complete, with sources, and the one place that a type needs besides its tensor rate."""

import pytest

from dse.base.package_tables import read_table
from dse.hardware.data_types import (
    BITS,
    COMPUTED,
    TENSOR_DTYPES,
    canonical,
    data_types,
    element_bytes,
    tensor_rates,
    with_role,
)
from dse.hardware.presets import preset_sheet
from dse.hardware.schema import gpu_schema

ROWS = read_table("schema/data_types.csv")
CLASSES = {"ffma", "hmma_884", "hmma_1688", "hmma_16816", "wgmma", "tcgen05"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["dtype"])
def test_every_number_has_a_source_and_a_status(row):
    assert row["title"] and row["source"]
    for what in ("area", "energy"):
        cells = [row[f"tensor_{what}"], row[f"{what}_source"], row[f"{what}_status"]]
        assert all(cells) if row["tensor_cores"] == "operands" else not any(cells)
        assert row[f"{what}_status"] in ("derived", "assumed", "fitted", "prior", "published", "")


@pytest.mark.parametrize("kind", data_types().values(), ids=lambda kind: kind.name)
def test_a_type_that_tensor_cores_multiply_has_a_rate_and_instructions(kind):
    assert kind.operands == (kind.tensor_rate in gpu_schema())
    assert not kind.operands or kind.instructions
    assert set(kind.instructions) <= CLASSES and set(kind.roles) <= {"activations", "weights", "kv"}
    assert {kind.computes_in, kind.result} - {""} <= set(data_types())


def test_wide_instructions_take_as_many_bits_of_k_whatever_the_type():
    """wgmma.m64nNk32B over four warps: 64 rows of 32 bytes; tcgen05 twice the rows."""
    for kind in data_types().values():
        assert kind.instructions.get("wgmma", 0.0) in (0.0, 64 * 32 * 8 / kind.bits / 4)
        assert kind.instructions.get("tcgen05", 0.0) == 2 * kind.instructions.get("wgmma", 0.0)


def test_the_places_that_kernels_carry_stay():
    assert TENSOR_DTYPES[:7] == ("fp64", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")


def test_scales_count_among_the_bytes_of_a_block_format():
    assert element_bytes("fp4") == (4 + 8 / 16) / 8
    assert element_bytes("int4") == (4 + 16 / 128) / 8
    assert element_bytes("bf16") == BITS["bf16"] / 8 == 2


def test_roles_of_a_network():
    assert set(with_role("weights")) - set(with_role("activations")) == {"int4", "mxfp4"}
    assert set(with_role("activations")) - set(with_role("kv")) == {"tf32", "fp8_block", "mxfp8"}
    assert set(COMPUTED) == {*TENSOR_DTYPES, "fp32"}


def test_other_spellings_mean_one_type_each():
    spelled = [name for row in ROWS for name in (row["dtype"], *filter(None, row["spellings"].split(";")))]
    assert len(spelled) == len(set(spelled))
    expected = {"bfloat16": "bf16", "half": "fp16", "e4m3": "fp8", "nvfp4": "fp4", "fp8": "fp8", "mxfp9": "mxfp9"}
    assert {name: canonical(name) for name in expected} == expected


def test_the_tensor_rates_among_the_attributes_of_a_preset():
    rates = tensor_rates(preset_sheet("h100_sxm").numbers())
    assert tuple(rates) == TENSOR_DTYPES and rates["fp8"] == 2 * rates["bf16"] == 1024
