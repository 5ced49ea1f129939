"""Data types: bytes with scales, and which types of weights, activations and cache go together."""

import pytest

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import precision


def test_four_bit_types_carry_their_scales():
    assert element_bytes("bf16") == 2
    assert element_bytes("int4") == (4 + 16 / 128) / 8
    assert element_bytes("fp4") == (4 + 8 / 16) / 8


@pytest.mark.parametrize(
    ("asked", "weights", "activations", "kv", "output"),
    [
        ({}, "bf16", "bf16", "bf16", "bf16"),
        ({"dtype": "fp16"}, "fp16", "fp16", "fp16", "fp16"),
        ({"dtype": "fp8"}, "fp8", "fp8", "bf16", "bf16"),
        ({"dtype": "fp8", "kv": "fp8"}, "fp8", "fp8", "fp8", "bf16"),
        ({"dtype": "int8"}, "int8", "int8", "bf16", "bf16"),
        ({"dtype": "int4"}, "int4", "bf16", "bf16", "bf16"),
        ({"dtype": "fp16", "weights": "int4"}, "int4", "fp16", "fp16", "fp16"),
        ({"dtype": "fp4"}, "fp4", "fp4", "bf16", "bf16"),
        ({"weights": "fp8"}, "fp8", "bf16", "bf16", "bf16"),
        ({"dtype": "tf32"}, "tf32", "tf32", "fp32", "tf32"),
        ({"dtype": "fp32"}, "fp32", "fp32", "fp32", "fp32"),
    ],
)
def test_one_type_is_the_default_of_all_three(asked, weights, activations, kv, output):
    found = precision("x", **asked)
    assert (found.weights, found.activations, found.kv, found.output) == (weights, activations, kv, output)
    assert found.compute == activations


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"dtype": "bf15"}, "dtype=bf15 is not a data type for it; did you mean 'bf16'"),
        ({"activations": "int4"}, "activations=int4 is not a data type for it"),
        ({"kv": "int4"}, "kv=int4 is not a data type for it"),
        ({"dtype": "fp8", "weights": "bf16"}, "weights may not be wider than activations"),
        ({"weights": "fp16", "activations": "bf16"}, "no matrix instruction multiplies the two"),
        ({"weights": "int8", "activations": "fp8"}, "no matrix instruction multiplies the two"),
        ({"kv": "fp32"}, "kv=fp32 is wider than the bf16 that attention computes in"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, sentence):
    with pytest.raises(InputError, match=f"net: .*{sentence}"):
        precision("net", **asked)
