"""Gated delta net: parameters, state and kernels by hand, as Qwen3.5-397B has it."""

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.states.gated_delta_net import GatedDeltaNet
from tests.workload.networks.test_step import STEP

NET = GatedDeltaNet(key_heads=16, value_heads=64, key_dim=128, value_dim=128, conv=4)
KEYS, VALUES = 16 * 128, 64 * 128


def test_parameters_are_projections_and_taps():
    projected = 2 * KEYS + 2 * VALUES + 2 * 64
    assert NET.parameters(4096) == NET.parameters(4096, 8) == 4096 * (projected + VALUES) + 4 * (2 * KEYS + VALUES)


def test_the_state_is_as_large_at_any_length():
    bf16 = precision("x")
    state = 64 * 128 * 128 * 4
    assert state == 4.194304e6
    assert NET.cache_bytes(0, bf16, 1) == NET.cache_bytes(1e6, bf16, 1) == state + 3 * (2 * KEYS + VALUES) * 2
    assert NET.cache_bytes(0, bf16, 8) == NET.cache_bytes(0, bf16, 1) / 8


def test_kernels_in_their_order():
    names = [operator.name for operator in NET.operators(STEP)]
    scan = ["delta_scores", "delta_values", "delta_states", "delta_passing", "delta_results"]
    assert names == ["delta_projection", "delta_convolution", *scan, "delta_norm", "output_projection"]


def test_heads_are_shared_out_evenly():
    NET.check(16, "w", "Qwen")
    with pytest.raises(InputError, match="w: tp=32 does not divide the 16 key heads of Qwen"):
        NET.check(32, "w", "Qwen")
