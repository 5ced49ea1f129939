"""One layer of each kind of attention and MLP written out by hand: kernels by name, operations and bytes of each.

Prefill and decode, at two shapes, on one GPU and shared by eight, all in bf16. Plain networks are in
:mod:`tests.workload.networks.test_layers`, latent attention in :mod:`tests.workload.networks.test_latent_attention`.
"""

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.names import load_network
from dse.workload.target import Target

H100 = Target((9.0, 9.0), True)
Row = tuple[str, float, float]
SHAPES = [("prefill", 1, 1024), ("prefill", 2, 12_288), ("decode", 8, 12_288), ("decode", 64, 1024)]


def product(name: str, rows: float, columns: float, depth: float) -> Row:
    return name, 2 * rows * columns * depth, 2 * (rows * depth + depth * columns + rows * columns)


def vector(name: str, elements: float, arrays: float = 2) -> Row:
    return name, 0, 2 * elements * arrays


def norm(name: str, rows: float, hidden: int) -> Row:
    """With the sum of the stream: two arrays in, two out."""
    return vector(name, rows * hidden, 4)


class Shape:
    """Rows of a step, and what its queries see of keys in reach."""

    def __init__(self, phase: str, batch: int, tokens: int, gpus: int) -> None:
        self.decodes, self.batch, self.tokens, self.n = phase == "decode", batch, tokens, gpus
        self.rows = batch * (1 if self.decodes else tokens)

    def window(self, size: int) -> tuple[float, float]:
        """Pairs of a query and a key, and keys that are read, with a window."""
        seen = [min(position, size) for position in self.positions]
        return self.batch * sum(seen), self.batch * (seen[0] if self.decodes else self.tokens)

    def chunk(self, size: int) -> tuple[float, float]:
        """The same with chunks; a decode step has the fullest."""
        if self.decodes:
            return self.window(size)
        return self.batch * sum((p - 1) % size + 1 for p in self.positions), self.batch * self.tokens

    @property
    def positions(self) -> range:
        """Tokens up to each query."""
        return range(self.tokens, self.tokens + 1) if self.decodes else range(1, self.tokens + 1)


def grouped(s: Shape, seen: tuple[float, float], sizes: tuple[int, int, int, int], **has: bool) -> list[Row]:
    """Grouped-query attention of (hidden, heads, key-value heads, head size)."""
    hidden, heads, kv, d = sizes
    q, k = heads // s.n * d, max(1, kv // s.n) * d
    gate, sinks = q if has.get("gate") else 0, 2 * heads // s.n if has.get("sinks") else 0
    norms = [vector("query_norm", s.rows * q), vector("key_norm", s.rows * k)] if has.get("norms") else []
    pairs, read = seen
    return [
        product("qkv_projection", s.rows, q + gate + 2 * k, hidden),
        *norms,
        *([vector("rope", s.rows * (q + k))] if has.get("rope", True) else []),
        vector("kv_write", s.rows * 2 * k),
        ("attention", 4 * pairs * q, 2 * (2 * read * k + 2 * s.rows * q) + sinks),
        *([vector("attention_gate", s.rows * q, 3)] if gate else []),
        product("output_projection", s.rows, hidden, q),
    ]


def gated(rows: float, hidden: int, ffn: float, act: str, prefix: str = "") -> list[Row]:
    return [
        product(f"{prefix}gate_up_projection", rows, 2 * ffn, hidden),
        vector(f"{prefix}{act}", rows * ffn, 3),
        product(f"{prefix}down_projection", rows, hidden, ffn),
    ]


def of_experts(name: str, done: float, read: float, columns: float, depth: float) -> Row:
    return name, 2 * done * columns * depth, 2 * (done * depth + read * columns * depth + done * columns)


def experts(s: Shape, count: int, used: int, hidden: int, ffn: int) -> list[Row]:
    """A mixture whose library's products gather the rows of its experts themselves."""
    pairs, read = s.rows * used, count * (1 - (1 - used / count) ** s.rows)
    width = ffn / s.n
    return [
        product("router", s.rows, count, hidden),
        vector("expert_choice", s.rows * count),
        vector("expert_sort", 4 * pairs),
        of_experts("expert_gate_up_projection", pairs, read, 2 * width, hidden),
        vector("expert_silu", pairs * width, 3),
        of_experts("expert_down_projection", pairs, read, hidden, width),
        vector("combine_experts", s.rows * hidden, used + 1),
    ]


def routed(s: Shape, count: int, used: int, sizes: tuple[int, int], shared: int, gate: bool = False) -> list[Row]:
    """A mixture by its experts' rows, beside experts that every token passes; ``sizes``: hidden, an expert's."""
    (hidden, ffn), pairs, read = sizes, s.rows * used, count * (1 - (1 - used / count) ** s.rows)
    width = ffn / s.n
    scaled = [product("shared_gate", s.rows, 1, hidden), vector("shared_scale", s.rows * hidden)]
    return [
        product("router", s.rows, count, hidden),
        vector("expert_choice", s.rows * count),
        vector("expert_sort", 4 * pairs),
        of_experts("expert_gate_up_projection", pairs, read, 2 * width, hidden),
        vector("expert_silu", pairs * width, 3),
        of_experts("expert_down_projection", pairs, read, hidden, width),
        vector("combine_experts", s.rows * hidden, used + 1),
        *gated(s.rows, hidden, shared / s.n, "silu", "shared_"),
        *(scaled if gate else []),
        vector("combine_shared", s.rows * hidden, 3),
    ]


def state(s: Shape, name: str, heads: int, keys: int, values: int, channels: int, chunk: int, fma: int) -> list[Row]:
    """Convolution of four taps, then the update of a token or the scan of a prompt."""
    heads, channels, c = heads // s.n, channels // s.n, min(chunk, s.tokens)
    numbers = heads * keys * values
    if s.decodes:
        update = (f"{name}_update", 2 * fma * s.rows * numbers, 2 * 4 * s.rows * numbers)
        return [vector(f"{name}_convolution", s.rows * channels, 8), update]
    pairs, chunks = s.rows * heads, s.rows * heads / c
    return [
        vector(f"{name}_convolution", s.rows * channels),
        (f"{name}_scores", 2 * pairs * c * keys, 2 * (2 * pairs * keys + pairs * c)),
        (f"{name}_values", 2 * pairs * c * values, 2 * (pairs * c + 2 * pairs * values)),
        (f"{name}_states", 2 * pairs * keys * values, 2 * (pairs * (keys + values) + chunks * keys * values)),
        (f"{name}_passing", 0, 2 * 4 * chunks * keys * values),
        (f"{name}_results", 2 * pairs * keys * values, 2 * (pairs * (keys + values) + chunks * keys * values)),
    ]


def gpt_oss(s: Shape) -> list[list[Row]]:
    attention = grouped(s, s.window(128), (2880, 64, 8, 64), sinks=True)
    mlp = experts(s, 128, 4, 2880, 2880)
    return [[norm("attention_norm", s.rows, 2880), *attention], [norm("mlp_norm", s.rows, 2880), *mlp]]


def gemma(s: Shape) -> list[list[Row]]:
    attention = grouped(s, s.window(1024), (5376, 32, 16, 128), norms=True)
    after = [vector(f"{name}_post_norm", s.rows * 5376) for name in ("attention", "mlp")]
    mlp = gated(s.rows, 5376, 21504 / s.n, "gelu")
    return [
        [norm("attention_norm", s.rows, 5376), *attention, after[0]],
        [norm("mlp_norm", s.rows, 5376), *mlp, after[1]],
    ]


def scout(s: Shape) -> list[list[Row]]:
    attention = grouped(s, s.chunk(8192), (5120, 40, 8, 128), norms=True)
    mlp = routed(s, 16, 1, (5120, 8192), 8192)
    return [[norm("attention_norm", s.rows, 5120), *attention], [norm("mlp_norm", s.rows, 5120), *mlp]]


def qwen_next(s: Shape) -> list[list[Row]]:
    keys, values = 16 * 128, 32 * 128
    net = [
        product("delta_projection", s.rows, (2 * keys + 2 * values + 64) / s.n, 2048),
        *state(s, "delta", 32, 128, 128, 2 * keys + values, 64, 3),
        vector("delta_norm", s.rows * values / s.n, 3),
        product("output_projection", s.rows, 2048, values / s.n),
    ]
    mlp = routed(s, 512, 10, (2048, 512), 512, gate=True)
    return [[norm("attention_norm", s.rows, 2048), *net], [norm("mlp_norm", s.rows, 2048), *mlp]]


def nemotron_h(s: Shape) -> list[list[Row]]:
    width, groups = 256 * 64, 8 * 256
    mamba = [
        product("state_projection", s.rows, (2 * width + 2 * groups + 256) / s.n, 8192),
        *state(s, "state", 256, 256, 64, width + 2 * groups, 128, 2),
        vector("state_norm", s.rows * width / s.n, 3),
        product("output_projection", s.rows, 8192, width / s.n),
    ]
    return [[norm("attention_norm", s.rows, 8192), *mamba], []]


def deepseek(s: Shape) -> list[list[Row]]:
    heads, h = 128 // s.n, 7168
    indexed, read = s.window(10**9)
    chosen, attended = s.window(2048)
    scores = ("index_scores", 2 * indexed * 64 * 128, s.rows * 64 * 128 + read * 132 + 4 * indexed)
    per_head = [("absorbed_queries", 128, 512), ("absorbed_values", 512, 128)]
    absorbed = {
        name: (name, 2 * s.rows * heads * 128 * 512, 2 * heads * (s.rows * (a + b) + a * b)) for name, a, b in per_head
    }
    attention = [
        product("latent_projection", s.rows, 1536 + 576, h),
        vector("latent_norm", s.rows * (1536 + 512)),
        product("query_projection", s.rows, heads * 192, 1536),
        vector("rope", s.rows * (heads + 1) * 64),
        vector("kv_write", s.rows * 576),
        product("index_queries", s.rows, 64 * 128, 1536),
        product("index_keys", s.rows, 128 + 64, h),
        vector("index_norm", s.rows * 128),
        vector("index_rope", s.rows * 65 * 64),
        vector("index_quantise", s.rows * 65 * 128, 1.5),
        scores,
        ("index_choice", 0, 4 * indexed + 4 * chosen),
        absorbed["absorbed_queries"],
        (
            "latent_attention",
            2 * chosen * heads * (576 + 512),
            2 * ((attended if s.decodes else read) * 576 + s.rows * heads * (576 + 512)),
        ),
        absorbed["absorbed_values"],
        product("output_projection", s.rows, h, heads * 128),
    ]
    mlp = gated(s.rows, h, 18432 / s.n, "silu")
    return [[norm("attention_norm", s.rows, h), *attention], [norm("mlp_norm", s.rows, h), *mlp]]


HIDDEN = {"gpt_oss_120b": 2880, "gemma_3_27b": 5376, "llama4_scout": 5120, "qwen3_next_80b_a3b": 2048}
HIDDEN |= {"nemotron_h_56b": 8192, "deepseek_v3_2": 7168}
BY_HAND = {
    "gpt_oss_120b": gpt_oss,
    "gemma_3_27b": gemma,
    "llama4_scout": scout,
    "qwen3_next_80b_a3b": qwen_next,
    "nemotron_h_56b": nemotron_h,
    "deepseek_v3_2": deepseek,
}


def made(network: str, phase: str, batch: int, tokens: int, gpus: int) -> list[Row]:
    """Name, operations [FLOP] and bytes of each kernel of the network's first kind of layer."""
    shape = load_network(network)
    label = f"_{shape.layers[0][0].label}"
    serving = Serving(phase, batch, tokens, tokens, 0, precision("x"), gpus)
    operators = [o for o in llm_workload(shape, serving, "x", H100).operators if o.name.endswith(label)]
    kernels = [(o.name.removesuffix(label), o.candidates[0].kernel) for o in operators]
    return [(name, 2 * k.fma, k.cold_bytes + k.warm_bytes + k.write_bytes) for name, k in kernels]


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize(("phase", "batch", "tokens"), SHAPES)
@pytest.mark.parametrize("network", BY_HAND)
def test_a_layer_is_what_is_written_out_by_hand(network, phase, batch, tokens, gpus):
    s = Shape(phase, batch, tokens, gpus)
    expected = []
    for half, name in zip(BY_HAND[network](s), ("attention", "mlp"), strict=True):
        reduced = [vector(f"{name}_all_reduce", s.rows * HIDDEN[network])] if gpus > 1 and half else []
        last = half[-1:] if half and half[-1][0].endswith("post_norm") else []
        expected += [*half[: len(half) - len(last)], *reduced, *last]
    found = made(network, phase, batch, tokens, gpus)
    assert [row[0] for row in found] == [row[0] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert row[1:] == pytest.approx(wanted[1:], rel=1e-6), row[0]
