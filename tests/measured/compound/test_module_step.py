"""The step of a row of a module: its phase, its types, and the bytes between two of it."""

from types import SimpleNamespace

import pytest

from dse.base.errors import InputError
from dse.measured.compound.module_step import module_step
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.target import Target

LATENT = LatentAttention(16, 1536, 512, 128, 64, 128)
ROW = {"op": "x", "dtype": "bf16", "batch": 2.0, "seq_q": 1.0, "seq_kv": 100.0, "hidden": 7168.0}


def test_types_and_bytes_are_the_rows():
    row = SimpleNamespace(**ROW, block_format="proj=fp8", kv_dtype="fp8")
    step = module_step(row, LATENT, True, Target(), 7168)
    assert (step.phase, step.precision.weights, step.precision.kv) == ("decode", "fp8", "fp8")
    assert step.step_bytes == LATENT.parameters(7168) + 2 * 100 * 576
    assert module_step(SimpleNamespace(**ROW), LATENT, False, Target(), 7168).precision.weights == "bf16"


def test_fewer_keys_than_queries_are_refused():
    with pytest.raises(InputError, match="fewer keys"):
        module_step(SimpleNamespace(**ROW | {"seq_q": 101.0}), LATENT, False, Target(), 7168)
