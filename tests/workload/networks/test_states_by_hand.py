"""Layers that keep a state, of networks that are not shipped, written out by hand as in test_kinds_by_hand.

Short convolution, Kimi delta attention, lightning attention, attention beside Mamba2, latent attention without
rotation; prefill and decode at two shapes, on one GPU and shared by eight, all in bf16.
"""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.names import load_network
from tests.workload.networks.configurations import FALCON_H1, KIMI_LINEAR, LFM2, LFM2_MOE, MINIMAX_TEXT_01, RING, config
from tests.workload.networks.layer_properties import PROPERTIES
from tests.workload.networks.test_kinds_by_hand import (
    SHAPES,
    Shape,
    assert_alike,
    experts,
    gated,
    grouped,
    made,
    pre,
    product,
    routed,
    state,
    vector,
)

BF16 = precision("x")
EIGHT_HEADS = FALCON_H1 | {"num_attention_heads": 32, "num_key_value_heads": 8, "mamba_n_groups": 8}
"""A Falcon-H1 whose heads eight GPUs can share."""


def lfm2(s):
    channels = 2048 // s.n
    arrays = 6 if s.decodes else 2  # three tokens in, three out
    attention = [
        product("conv_projection", s.rows, 3 * channels, 2048),
        vector("conv_gate", s.rows * channels, 3),
        vector("conv_convolution", s.rows * channels, arrays),
        vector("conv_result_gate", s.rows * channels, 3),
        product("output_projection", s.rows, 2048, channels),
    ]
    return attention, gated(s.rows, 2048, 8192 / s.n, "silu")


def kimi(s):
    heads, width = 32 // s.n, 32 * 128 // s.n
    attention = [
        product("delta_projection", s.rows, 3 * width + heads + 2 * 128, 2304),
        product("delta_rates", s.rows, width, 128),
        product("delta_gates", s.rows, width, 128),
        *state(s, "delta", 32, 128, 128, 3 * 4096, 64, 3),
        vector("delta_norm", s.rows * width, 3),
        product("output_projection", s.rows, 2304, width),
    ]
    return attention, gated(s.rows, 2304, 9216 / s.n, "silu")


def kimi_latent(s):
    """A prompt makes keys and values of 32 heads, one token attends 576 elements; nothing is rotated."""
    heads, (pairs, read) = 32 // s.n, s.window(10**9)
    before = [
        product("latent_projection", s.rows, heads * 192 + 576, 2304),
        vector("latent_norm", s.rows * 512),
        vector("kv_write", s.rows * 576),
    ]
    if s.decodes:
        each = [2 * heads * (s.rows * (128 + 512) + 128 * 512)] * 2
        middle = [
            ("absorbed_queries", 2 * s.rows * heads * 128 * 512, each[0]),
            ("latent_attention", 2 * pairs * heads * 1088, 2 * (read * 576 + s.rows * heads * 1088)),
            ("absorbed_values", 2 * s.rows * heads * 128 * 512, each[1]),
        ]
    else:
        middle = [
            product("key_value_projection", s.rows, heads * 256, 512),
            ("latent_attention", 2 * pairs * heads * 320, 2 * heads * (read * 320 + s.rows * 320)),
        ]
    after = product("output_projection", s.rows, 2304, heads * 128)
    return [*before, *middle, after], routed(s, 256, 8, (2304, 1024), 1024)


def minimax(s):
    width = 64 * 128 // s.n
    kernels = state(s, "state", 64, 128, 128, 0, 256, 2)[1:]  # without a convolution
    attention = [
        product("state_projection", s.rows, 3 * width, 6144),
        vector("state_silu", s.rows * 3 * width),
        *kernels,
        vector("state_norm", s.rows * width),
        product("gate_projection", s.rows, width, 6144),
        vector("state_gate", s.rows * width, 3),
        product("output_projection", s.rows, 6144, width),
    ]
    return attention, experts(s, 32, 2, 6144, 9216)


def falcon_h1(s):
    width, groups = 32 * 128, 8 * 256
    mamba = [
        product("state_projection", s.rows, (2 * width + 2 * groups + 32) / s.n, 5120),
        *state(s, "state", 32, 256, 128, width + 2 * groups, 128, 2),
        vector("state_norm", s.rows * width / s.n, 3),
        product("state_output_projection", s.rows, 5120, width / s.n),
    ]
    attention = grouped(s, s.window(10**9), (5120, 32, 8, 128))
    return [*attention, *mamba, vector("mixer_sum", s.rows * 5120, 3)], gated(s.rows, 5120, 21504 / s.n, "silu")


BY_HAND = {
    "short convolution": (LFM2, 0, lfm2),
    "Kimi delta attention": (KIMI_LINEAR, 0, kimi),
    "latent, unrotated": (KIMI_LINEAR, 2, kimi_latent),
    "lightning attention": (MINIMAX_TEXT_01, 0, minimax),
    "attention beside Mamba2": (EIGHT_HEADS, 0, falcon_h1),
}


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize(("phase", "batch", "tokens"), SHAPES)
@pytest.mark.parametrize("kind", BY_HAND)
def test_a_layer_is_what_is_written_out_by_hand(tmp_path, kind, phase, batch, tokens, gpus):
    said, number, by_hand = BY_HAND[kind]
    path = str(config(tmp_path, **said))
    s, hidden = Shape(phase, batch, tokens, gpus), load_network(path).hidden
    assert_alike(made(path, number, phase, batch, tokens, gpus), pre(s, hidden, *by_hand(s)))


@pytest.mark.parametrize(
    ("said", "billions", "active"),
    [
        (LFM2, 1.17, 1.17),
        (LFM2_MOE, 8.3, 1.5),
        (KIMI_LINEAR, 49.1, 3),
        (MINIMAX_TEXT_01, 456, 45.9),
        (RING, 16.4, 1.28),
        (FALCON_H1, 34, 34),
    ],
    ids=["LFM2-1.2B", "LFM2-8B-A1B", "Kimi-Linear-48B-A3B", "MiniMax-Text-01", "Ring-mini-linear-2.0", "Falcon-H1-34B"],
)
def test_parameters_are_the_published_ones(tmp_path, said, billions, active):
    """Of model cards; of Kimi Linear, whose name rounds down, its checkpoint's; of Ring's 1.6 without both tables."""
    network = load_network(str(config(tmp_path, **said)))
    assert network.parameters / 1e9 == pytest.approx(billions, rel=0.02)
    assert network.active_parameters / 1e9 == pytest.approx(active, rel=0.1)


STATES = {
    "short convolution": 2048 * 2 * 2,
    "Kimi delta attention": 32 * 128 * 128 * 4 + 3 * 4096 * 3 * 2,
    "lightning attention": 64 * 128 * 128 * 4,
}


@pytest.mark.parametrize("kind", STATES)
def test_the_state_is_as_large_at_any_length(tmp_path, kind):
    said, number, _ = BY_HAND[kind]
    attention = load_network(str(config(tmp_path, **said))).layers[number][0].attention
    assert attention.kind == kind
    assert attention.cache_bytes(0, BF16, 1) == attention.cache_bytes(1e6, BF16, 1) == STATES[kind]
    assert attention.cache_bytes(0, BF16, 8) == STATES[kind] / 8
    with pytest.raises(InputError, match="w: tp=3 does not divide the "):
        attention.check(3, "w", "a network")


def test_keys_and_values_stand_beside_a_state(tmp_path):
    attention = load_network(str(config(tmp_path, **EIGHT_HEADS))).layers[0][0].attention
    state = attention.cache_bytes(0, BF16, 1)
    assert state == 32 * 128 * 256 * 4 + (4096 + 2 * 8 * 256) * 3 * 2
    assert attention.cache_bytes(1000, BF16, 1) == state + 1000 * 2 * 8 * 128 * 2
    with pytest.raises(InputError, match="groups of Mamba2 heads"):
        replace(attention, state=replace(attention.state, groups=12)).check(8, "w", "a network")


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("kind", BY_HAND)
def test_what_holds_of_every_kind_holds_of_these(tmp_path, kind, holds):
    """Each of PROPERTIES is an assertion."""
    said, number, _ = BY_HAND[kind]
    network = load_network(str(config(tmp_path, **said)))
    holds(network.layers[number][0], network.hidden)
