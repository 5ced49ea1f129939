"""Mamba2: parameters, state and kernels by hand, as Nemotron-H-56B has it."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.states.mamba2 import Mamba2
from tests.workload.networks.test_step import STEP

MAMBA = Mamba2(heads=256, head_dim=64, state=256, groups=8, conv=4, scan_chunk=128)
WIDTH = 256 * 64


def test_parameters_are_projections_and_taps():
    channels = WIDTH + 2 * 8 * 256
    assert MAMBA.parameters(8192) == 8192 * (channels + WIDTH + 256 + WIDTH) + 4 * channels
    assert MAMBA.parameters(8192, 8) == MAMBA.parameters(8192)
    copied = 2 * 8 * 256 * (8192 + 4)
    assert MAMBA.parameters(8192, 16) == MAMBA.parameters(8192) + copied  # each group is held twice


def test_the_state_is_as_large_at_any_length():
    bf16 = precision("x")
    state = 256 * 64 * 256 * 4 + 3 * (WIDTH + 2 * 8 * 256) * 2
    assert MAMBA.cache_bytes(0, bf16, 1) == MAMBA.cache_bytes(1e6, bf16, 1) == state
    assert MAMBA.cache_bytes(0, bf16, 8) == state / 8


def test_one_token_updates_the_state():
    kernels = {o.name: o.candidates[0].kernel for o in MAMBA.operators(replace(STEP, phase="decode", queries=1))}
    names = ["state_projection", "state_convolution", "state_update", "state_norm", "output_projection"]
    assert list(kernels) == names
    assert kernels["state_update"].warm_bytes == 2 * 256 * 64 * 256 * 4
    assert kernels["state_norm"].warm_bytes == 2 * 2 * WIDTH * 2  # of results and their gates


def test_heads_are_shared_out_evenly():
    MAMBA.check(16, "w", "Nemotron")
    with pytest.raises(InputError, match="w: tp=3 does not divide the 256 Mamba2 heads of Nemotron"):
        MAMBA.check(3, "w", "Nemotron")
