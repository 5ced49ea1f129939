"""Variants of grouped-query attention, and of where norms stand, written out by hand as in test_kinds_by_hand.

A gated result, keys that are values, values narrower than keys (with sinks, too), keys of one head, norms of all heads
together; norms after each half alone, and one norm before two halves side by side. Prefill and decode at two shapes, on
one GPU and shared by eight, all in bf16.
"""

import pytest

from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks
from tests.workload.networks.configurations import MIMO_V2, config
from tests.workload.networks.test_kinds_by_hand import (
    SHAPES,
    Row,
    Shape,
    assert_alike,
    experts,
    gated,
    grouped,
    made,
    norm,
    plain,
    pre,
    product,
    routed,
    sums,
    vector,
)

OLMO_3 = {
    "model_type": "olmo3",
    "num_key_value_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 100278,
    "sliding_window": 4096,
}
"""That of allenai/Olmo-3-1025-7B, but for what its class decides."""

COMMAND_R = {"model_type": "cohere", "num_attention_heads": 64, "num_key_value_heads": 64, "hidden_size": 8192}
"""A Command R whose layers have one norm."""

ONE_KEY = {
    "model_type": "gpt_bigcode",
    "num_attention_heads": 48,
    "num_key_value_heads": None,
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "multi_query": True,
    "hidden_act": "relu",
}
"""A StarCoder: 48 heads share one of keys and values."""


def gated_result(s: Shape) -> list[Row]:
    """Qwen3-Next: a gate as wide as the queries."""
    attention = grouped(s, s.window(10**9), (2048, 16, 2, 256), norms=True, gate=True)
    return pre(s, 2048, attention, routed(s, 512, 10, (2048, 512), 512, gate=True))


def keys_as_values(s: Shape) -> list[Row]:
    """Gemma 4: values are the keys before their norm, and have one of their own; each half is between two norms."""
    hidden, q, k = 2816, 16 // s.n * 512, max(1, 2 // s.n) * 512
    pairs, read = s.window(10**9)
    attention = [
        product("qkv_projection", s.rows, q + k, hidden),
        *(vector(f"{name}_norm", s.rows * size) for name, size in (("query", q), ("key", k), ("value", k))),
        vector("rope", s.rows * (q + k)),
        vector("kv_write", s.rows * 2 * k),
        ("attention", 4 * pairs * q, 2 * (2 * read * k + 2 * s.rows * q)),
        product("output_projection", s.rows, hidden, q),
    ]
    mlp = [(name.replace("silu", "gelu"), *rest) for name, *rest in routed(s, 128, 8, (hidden, 704), 2112)]
    rows = []
    for name, half in (("attention", attention), ("mlp", mlp)):
        after = vector(f"{name}_post_norm", s.rows * hidden)
        rows += [norm(f"{name}_norm", s.rows, hidden), *half, *sums(s, name, hidden), after]
    return rows


def narrow_values(s: Shape, kv_heads: int, seen: tuple[float, float], sinks: bool) -> list[Row]:
    """MiMo-V2: keys of 192 elements, values of 128."""
    heads, kv, (pairs, read) = 64 // s.n, max(1, kv_heads // s.n), seen
    moved = 2 * (read * kv * 320 + s.rows * heads * 320) + (2 * heads if sinks else 0)
    return [
        product("qkv_projection", s.rows, heads * 192 + kv * 320, 4096),
        vector("rope", s.rows * (heads + kv) * 192),
        vector("kv_write", s.rows * kv * 320),
        ("attention", 2 * pairs * heads * 320, moved),
        product("output_projection", s.rows, 4096, heads * 128),
    ]


def mimo_full(s: Shape) -> list[Row]:
    attention = narrow_values(s, 4, s.window(10**9), sinks=False)
    return pre(s, 4096, attention, gated(s.rows, 4096, 16384 / s.n, "silu"))


def mimo_window(s: Shape) -> list[Row]:
    return pre(s, 4096, narrow_values(s, 8, s.window(128), sinks=True), experts(s, 256, 8, 4096, 2048))


def olmo(s: Shape) -> list[Row]:
    """The sum stands after the norm of each half."""
    attention = grouped(s, s.window(4096), (4096, 32, 32, 128), norms=True)
    rows = []
    for name, half in (("attention", attention), ("mlp", gated(s.rows, 4096, 11008 / s.n, "silu"))):
        after = [vector(f"{name}_post_norm", s.rows * 4096), vector(f"{name}_residual", s.rows * 4096, 3)]
        rows += [*half, *sums(s, name, 4096), *after]
    return rows


def command_r(s: Shape) -> list[Row]:
    """Both halves are added to the stream at the end, by two additions in turn."""
    attention = grouped(s, s.window(10**9), (8192, 64, 64, 128))
    mlp = gated(s.rows, 8192, 14336 / s.n, "silu")
    before, after = vector("layer_norm", s.rows * 8192), vector("residual", s.rows * 8192, 6)
    return [before, *attention, *sums(s, "attention", 8192), *mlp, *sums(s, "mlp", 8192), after]


def one_key(s: Shape) -> list[Row]:
    """Every GPU has the one head of keys and values."""
    attention = grouped(s, s.window(10**9), (6144, 48, 1, 128), rope=False)
    return pre(s, 6144, attention, plain(s.rows, 6144, 24576 / s.n))


BY_HAND = {
    "a gated result": ("qwen3_next_80b_a3b", 1, gated_result),
    "keys as values, four norms": ("gemma_4_26b_a4b", 1, keys_as_values),
    "narrow values": (MIMO_V2, 0, mimo_full),
    "narrow values, window, sinks": (MIMO_V2, 1, mimo_window),
    "norms after each half": (OLMO_3, 0, olmo),
    "halves side by side": (COMMAND_R, 0, command_r),
    "keys of one head": (ONE_KEY, 0, one_key),
}
"""Shipped network or configuration, number of the kind of layer, and what one layer of it is."""


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize(("phase", "batch", "tokens"), SHAPES)
@pytest.mark.parametrize("kind", BY_HAND)
def test_a_layer_is_what_is_written_out_by_hand(tmp_path, kind, phase, batch, tokens, gpus):
    network, number, by_hand = BY_HAND[kind]
    name = network if isinstance(network, str) else str(config(tmp_path, **network))
    expected = by_hand(Shape(phase, batch, tokens, gpus))
    assert_alike(made(name, number, phase, batch, tokens, gpus), expected)


def test_every_variant_that_a_shipped_network_has_is_written_out(tmp_path):
    """Of attention's yes and no, and of where norms stand, here or in test_kinds_by_hand; softcaps move nothing."""
    from tests.workload.networks.test_kinds_by_hand import BY_HAND as KINDS

    named = [(network, number) for network, number, _ in (*KINDS.values(), *BY_HAND.values())]
    written = [
        load_network(network if isinstance(network, str) else str(config(tmp_path, **network))).layers[number][0]
        for network, number in named
    ]
    shipped = [layer for network in networks().values() for layer, _ in network.layers]
    assert {layer.arrangement for layer in shipped} <= {layer.arrangement for layer in written}
    for has in ("output_gate", "sinks", "keys_as_values", "value_dim", "window", "chunk"):
        assert any(getattr(layer.attention, has, 0) for layer in written), has
    assert {getattr(layer.attention, "qk_norm", "none") for layer in shipped} <= {
        getattr(layer.attention, "qk_norm", "none") for layer in written
    }
