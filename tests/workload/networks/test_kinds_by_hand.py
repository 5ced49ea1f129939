"""One layer of each kind of attention and MLP written out by hand: kernels by name, operations and bytes of each.

Prefill and decode, at two shapes, on one GPU and shared by eight, all in bf16. Attentions: full, window, chunk, latent,
sparse latent, sparse latent chosen before, compressed and sparse compressed (with four residual streams), block sparse,
gated delta net, Mamba2, none. MLPs: dense, without gate, mixture, with shared experts, on latents, none.
"""

from math import ceil

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks
from dse.workload.operators.forms import usual_form
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


def plain(rows: float, hidden: int, ffn: float, prefix: str = "") -> list[Row]:
    """Without a gate."""
    return [
        product(f"{prefix}up_projection", rows, ffn, hidden),
        vector(f"{prefix}relu", rows * ffn),
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


def latent_mixture(s: Shape) -> list[list[Row]]:
    """Tokens are projected to latents, whose experts have no gate; what every token passes stays as wide as it was."""
    h, latent, ffn, used, count = 4096, 1024, 2688 / s.n, 22, 512
    pairs, read = s.rows * used, count * (1 - (1 - used / count) ** s.rows)
    mlp = [
        product("router", s.rows, count, h),
        product("latent_down_projection", s.rows, latent, h),
        vector("expert_choice", s.rows * count),
        vector("expert_sort", 4 * pairs),
        of_experts("expert_up_projection", pairs, read, ffn, latent),
        vector("expert_relu", pairs * ffn),
        of_experts("expert_down_projection", pairs, read, latent, ffn),
        vector("combine_experts", s.rows * latent, used + 1),
        product("latent_up_projection", s.rows, h, latent),
        *plain(s.rows, h, 5376 / s.n, "shared_"),
        vector("combine_shared", s.rows * h, 3),
    ]
    return [[], [norm("mlp_norm", s.rows, h), *mlp]]


def nemotron_h_dense(s: Shape) -> list[list[Row]]:
    return [[], [norm("mlp_norm", s.rows, 8192), *plain(s.rows, 8192, 32768 / s.n)]]


def llama(s: Shape) -> list[list[Row]]:
    attention = grouped(s, s.window(10**9), (4096, 32, 8, 128))
    mlp = gated(s.rows, 4096, 14336 / s.n, "silu")
    return [[norm("attention_norm", s.rows, 4096), *attention], [norm("mlp_norm", s.rows, 4096), *mlp]]


def qwen_mixture(s: Shape) -> list[list[Row]]:
    attention = grouped(s, s.window(10**9), (2048, 32, 4, 128), norms=True)
    mlp = experts(s, 128, 8, 2048, 768)
    return [[norm("attention_norm", s.rows, 2048), *attention], [norm("mlp_norm", s.rows, 2048), *mlp]]


def qwen_dense(s: Shape) -> list[list[Row]]:
    keys, values = 16 * 128, 48 * 128
    net = [
        product("delta_projection", s.rows, (2 * keys + 2 * values + 96) / s.n, 5120),
        *state(s, "delta", 48, 128, 128, 2 * keys + values, 64, 3),
        vector("delta_norm", s.rows * values / s.n, 3),
        product("output_projection", s.rows, 5120, values / s.n),
    ]
    mlp = gated(s.rows, 5120, 17408 / s.n, "silu")
    return [[norm("attention_norm", s.rows, 5120), *net], [norm("mlp_norm", s.rows, 5120), *mlp]]


Sizes = tuple[int, int, int, int, int, int]
V3: Sizes = (7168, 128, 1536, 128, 64, 128)
GLM: Sizes = (6144, 64, 2048, 192, 64, 256)
"""Hidden, heads, rank of queries, a head without positions, with them, of values; the latent has 512 elements."""


def to_latents(s: Shape, sizes: Sizes) -> list[Row]:
    """What every layer of latent attention begins with."""
    h, heads, rank, nope, rope, _ = sizes
    return [
        norm("attention_norm", s.rows, h),
        product("latent_projection", s.rows, rank + 512 + rope, h),
        vector("latent_norm", s.rows * (rank + 512)),
        product("query_projection", s.rows, heads // s.n * (nope + rope), rank),
        vector("rope", s.rows * (heads // s.n + 1) * rope),
        vector("kv_write", s.rows * (512 + rope)),
    ]


def absorbed(s: Shape, sizes: Sizes, pairs: float, read: float) -> list[Row]:
    """Heads attend the latent, whose first 512 elements are their values."""
    h, heads, _, nope, rope, value = sizes
    heads, kept = heads // s.n, 512 + rope
    names = {"absorbed_queries": (nope, 512), "absorbed_values": (512, value)}
    before, after = (
        (name, 2 * s.rows * heads * a * b, 2 * heads * (s.rows * (a + b) + a * b)) for name, (a, b) in names.items()
    )
    moved = 2 * (read * kept + s.rows * heads * (kept + 512))
    attention = ("latent_attention", 2 * pairs * heads * (kept + 512), moved)
    return [before, attention, after, product("output_projection", s.rows, h, heads * value)]


def latent(s: Shape) -> list[Row]:
    """A prompt's keys and values are made of its latents."""
    h, heads, _, nope, rope, value = V3
    pairs, read = s.window(10**9)
    if s.decodes:
        return [*to_latents(s, V3), *absorbed(s, V3, pairs, read)]
    heads, key = heads // s.n, nope + rope
    moved = 2 * heads * (read * (key + value) + s.rows * (key + value))
    return [
        *to_latents(s, V3),
        product("key_value_projection", s.rows, heads * (nope + value), 512),
        ("latent_attention", 2 * pairs * heads * (key + value), moved),
        product("output_projection", s.rows, h, heads * value),
    ]


def deepseek_dense(s: Shape) -> list[list[Row]]:
    return [latent(s), [norm("mlp_norm", s.rows, 7168), *gated(s.rows, 7168, 18432 / s.n, "silu")]]


def deepseek_experts(s: Shape) -> list[list[Row]]:
    return [latent(s), [norm("mlp_norm", s.rows, 7168), *routed(s, 256, 8, (7168, 2048), 2048)]]


def chosen(s: Shape) -> tuple[float, float]:
    """Pairs that are attended of the tokens that an indexer chooses, and tokens that are read: of a prompt all."""
    pairs, attended = s.window(2048)
    return pairs, attended if s.decodes else s.batch * s.tokens


def deepseek_sparse(s: Shape) -> list[list[Row]]:
    indexed, read = s.window(10**9)
    scores = ("index_scores", 2 * indexed * 64 * 128, s.rows * 64 * 128 + read * 132 + 4 * indexed)
    indexer = [
        product("index_queries", s.rows, 64 * 128, 1536),
        product("index_keys", s.rows, 128 + 64, 7168),
        vector("index_norm", s.rows * 128),
        vector("index_rope", s.rows * 65 * 64),
        vector("index_quantise", s.rows * 65 * 128, 1.5),
        scores,
        ("index_choice", 0, 4 * indexed + 4 * chosen(s)[0]),
    ]
    attention = [*to_latents(s, V3), *indexer, *absorbed(s, V3, *chosen(s))]
    return [attention, [norm("mlp_norm", s.rows, 7168), *gated(s.rows, 7168, 18432 / s.n, "silu")]]


def glm_chosen_before(s: Shape) -> list[list[Row]]:
    mlp = [norm("mlp_norm", s.rows, 6144), *routed(s, 256, 8, (6144, 2048), 2048)]
    return [[*to_latents(s, GLM), *absorbed(s, GLM, *chosen(s))], mlp]


def block_sparse(s: Shape) -> list[list[Row]]:
    """MiniMax-M3: a head of the indexer for each key-value head; blocks of 128 tokens by their best, 16 are chosen."""
    indexed, read = s.window(10**9)
    heads = max(1, 4 // s.n)
    scored, kept = (4 * pairs * heads / 128 for pairs in (indexed, chosen(s)[0]))
    indexer = [
        product("index_projection", s.rows, (heads + 1) * 128, 6144),
        vector("index_norm", s.rows * (heads + 1) * 128),
        vector("index_rope", s.rows * (heads + 1) * 128),
        ("index_scores", 2 * indexed * heads * 128, 2 * (s.rows * heads * 128 + read * 128) + scored),
        ("index_choice", 0, scored + kept),
    ]
    attention = grouped(s, chosen(s), (6144, 64, 4, 128), norms=True)
    mlp = routed(s, 128, 4, (6144, 3072), 3072)
    return [
        [norm("attention_norm", s.rows, 6144), *attention[:-2], *indexer, *attention[-2:]],
        [norm("mlp_norm", s.rows, 6144), *mlp],
    ]


def compressor(s: Shape, name: str, dim: int, ratio: int, more: int = 0) -> list[Row]:
    """A value and a weight a channel, of each of the stretches that a token stands in; a key of them leaves."""
    columns = 2 * dim * (2 if ratio == 4 else 1)
    out = 1 / ratio / (2 if ratio == 4 else 1)
    return [
        product(f"{name}_projection", s.rows, columns + more, 4096),
        vector(f"{name}_pooling", s.rows * columns / 2, 2 + out),
    ]


def v4_attention(s: Shape, ratio: int, best: int) -> list[Row]:
    """DeepSeek-V4-Flash: 64 heads of 512 in 8 groups, on one vector a token, and keys of ``ratio`` tokens."""
    h, heads, groups = 4096, 64 // s.n, 8 // s.n
    indexed, read = s.window(10**9)
    chosen = s.window(best * ratio)[0] / ratio
    listed = ceil((s.window(128)[0] + chosen) / s.rows)
    pairs, keys = s.window(listed)[0], min(s.tokens, listed + s.rows / s.batch - 1)
    index = [
        product("index_queries", s.rows, 64 * 128, 1024),
        *compressor(s, "index", 128, ratio, more=64),
        vector("index_rope", s.rows * 64 * 64),
        vector("index_quantise", s.rows * 64 * 128, 1.5),
        ("index_scores", 2 * indexed / 4 * 64 * 128, s.rows * 64 * 128 + read / 4 * 132 + indexed),
        ("index_choice", 0, indexed + 4 * chosen),
    ]
    moved = 2 * 512 * (s.batch * keys + 2 * s.rows * heads) + 2 * heads
    depth = heads // groups * 512
    return [
        product("latent_projection", s.rows, 1024 + 512, h),
        vector("latent_norm", s.rows * (1024 + 512)),
        product("query_projection", s.rows, heads * 512, 1024),
        vector("query_norm", s.rows * heads * 512),
        vector("rope", s.rows * (heads + 1) * 64),
        vector("kv_write", s.rows * 512),
        *compressor(s, "compressor", 512, ratio),
        *(index if ratio == 4 else []),
        ("latent_attention", 2 * pairs * heads * 1024, moved),
        vector("result_rope", s.rows * heads * 64),
        ("group_projection", 2 * s.rows * groups * 1024 * depth, 2 * groups * product("", s.rows, 1024, depth)[2] / 2),
        product("output_projection", s.rows, h, groups * 1024),
    ]


def of_streams(s: Shape, name: str, half: list[Row]) -> list[Row]:
    """What four residual streams put before and after half of a layer."""
    before = [
        product(f"{name}_stream_weights", s.rows, 24, 4 * 4096),
        vector(f"{name}_mix", s.rows * 4096, 5),
        vector(f"{name}_norm", s.rows * 4096),
    ]
    return [*before, *half, vector(f"{name}_spread", s.rows * 4096, 9)]


def v4_sparse(s: Shape) -> list[list[Row]]:
    mlp = routed(s, 256, 6, (4096, 2048), 2048)
    return [of_streams(s, "attention", v4_attention(s, 4, 512)), of_streams(s, "mlp", mlp)]


def v4_compressed(s: Shape) -> list[list[Row]]:
    mlp = routed(s, 256, 6, (4096, 2048), 2048)
    return [of_streams(s, "attention", v4_attention(s, 128, 10**9)), of_streams(s, "mlp", mlp)]


BY_HAND = {
    "full + dense": ("llama3_8b", 0, llama),
    "full + mixture": ("qwen3_30b_a3b", 0, qwen_mixture),
    "window + mixture, sinks": ("gpt_oss_120b", 0, gpt_oss),
    "window + dense, four norms": ("gemma_3_27b", 0, gemma),
    "chunk + mixture with shared experts": ("llama4_scout", 0, scout),
    "latent + dense": ("deepseek_v3", 0, deepseek_dense),
    "latent + mixture with shared experts": ("deepseek_v3", 1, deepseek_experts),
    "sparse latent with its indexer + dense": ("deepseek_v3_2", 0, deepseek_sparse),
    "sparse latent chosen before + mixture": ("glm_5_2", 1, glm_chosen_before),
    "sparse compressed + mixture, four streams": ("deepseek_v4_flash", 1, v4_sparse),
    "compressed + mixture, four streams": ("deepseek_v4_flash", 2, v4_compressed),
    "block sparse + mixture with shared experts": ("minimax_m3", 1, block_sparse),
    "gated delta net + mixture with shared experts": ("qwen3_next_80b_a3b", 0, qwen_next),
    "gated delta net + dense": ("qwen3_5_27b", 0, qwen_dense),
    "Mamba2": ("nemotron_h_56b", 0, nemotron_h),
    "dense without gate": ("nemotron_h_56b", 1, nemotron_h_dense),
    "mixture on latents": ("nemotron_3_super", 1, latent_mixture),
}
"""Network, number of the kind of layer, and what one layer of it is."""

ENDS = ("embedding", "final_norm", "logits", "sampling")


def made(network: str, number: int, phase: str, batch: int, tokens: int, gpus: int) -> list[Row]:
    """Name, operations [FLOP] and bytes of each kernel of one layer."""
    shape = load_network(network)
    label = shape.layers[number][0].label
    label = f"_{label}" if label else ""
    others = {f"_{layer.label}" for layer, _ in shape.layers if len(layer.label) >= len(label)} - {label}
    serving = Serving(phase, batch, tokens, tokens, 0, precision("x"), gpus)
    operators = usual_form(llm_workload(shape, serving, "x", H100).operators)
    mine = [o for o in operators if o.name.endswith(label) and o.name not in ENDS]
    mine = [o for o in mine if not any(o.name.endswith(other) for other in others)]
    kernels = [(o.name.removesuffix(label), o.candidates[0].kernel) for o in mine]
    return [(name, 2 * k.fma, k.cold_bytes + k.warm_bytes + k.write_bytes) for name, k in kernels]


def assert_alike(found: list[Row], expected: list[Row]) -> None:
    """Kernels of one layer by name, in order; operations and bytes of each but for roundings."""
    assert [row[0] for row in found] == [row[0] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert row[1:] == pytest.approx(wanted[1:], rel=1e-6), row[0]


def sums(s: Shape, name: str, hidden: int) -> list[Row]:
    """What GPUs that share a half add up."""
    return [vector(f"{name}_all_reduce", s.rows * hidden)] if s.n > 1 else []


def pre(s: Shape, hidden: int, attention: list[Row], mlp: list[Row]) -> list[Row]:
    """Each half after a norm."""
    halves = zip(("attention", "mlp"), (attention, mlp), strict=True)
    return [
        row for name, half in halves for row in (norm(f"{name}_norm", s.rows, hidden), *half, *sums(s, name, hidden))
    ]


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize(("phase", "batch", "tokens"), SHAPES)
@pytest.mark.parametrize("kind", BY_HAND)
def test_a_layer_is_what_is_written_out_by_hand(kind, phase, batch, tokens, gpus):
    network, number, by_hand = BY_HAND[kind]
    s, hidden = Shape(phase, batch, tokens, gpus), load_network(network).hidden
    expected = []
    for half, name in zip(by_hand(s), ("attention", "mlp"), strict=True):
        reduced = sums(s, name, hidden) if half else []
        last = half[-1:] if half and half[-1][0].endswith(("post_norm", "spread")) else []
        expected += [*half[: len(half) - len(last)], *reduced, *last]
    assert_alike(made(network, number, phase, batch, tokens, gpus), expected)


def test_every_kind_that_a_shipped_network_has_is_written_out():
    """Their first words: sizes differ."""
    written = {load_network(network).layers[number][0] for network, number, _ in BY_HAND.values()}
    attentions = {type(layer.attention).__name__ for layer in written}
    mlps = {layer.mlp.kind for layer in written}
    shipped = [layer for network in networks().values() for layer, _ in network.layers]
    assert attentions == {type(layer.attention).__name__ for layer in shipped}
    assert mlps == {layer.mlp.kind for layer in shipped}
