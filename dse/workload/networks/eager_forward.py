"""A forward pass as PyTorch runs it: a kernel an operator, attention unfused, fp32 on CUDA cores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.workload.operator import FOREVER, Operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import TUNED
from dse.workload.operators.vector import vector_operator

DTYPE, BYTES = "fp32", 4.0
PHASE = "forward"

COPY = "mul_scalar"
"""Stands for a copy into another layout: an array read, an array written."""

TANH = ("pow", "mul_scalar", "add", "mul_scalar", "tanh", "add_scalar", "mul", "mul_scalar")
"""The kernels of Hugging Face's ``gelu_new``, unfused: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""


@dataclass(frozen=True)
class Forward:
    """The shape of a transformer whose forward pass was timed: all tokens at once, no cache.

    ``encoder``: queries, keys and values are three products, norms follow the sums, and there are no logits (BERT);
    else one product, norms before, and logits of every token (GPT-2, OPT). ``activation``: gelu, gelu_tanh or relu.
    """

    name: str
    title: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    encoder: bool
    activation: str


@cache
def forwards() -> dict[str, Forward]:
    """Return the known forward passes by name."""
    whole = ("layers", "hidden", "heads", "ffn", "vocab")
    return {
        row["forward"]: Forward(
            row["forward"],
            row["name"],
            **{key: int(row[key]) for key in whole},
            encoder=row["encoder"] == "1",
            activation=row["activation"],
        )
        for row in read_table("networks/forwards.csv")
    }


def find_forward(name: str) -> Forward:
    """Return a forward pass by name; raises InputError."""
    if name not in forwards():
        raise InputError(f"no forward pass is known of {name!r}; {accepted(name, forwards())}")
    return forwards()[name]


def forward_operators(network: Forward, batch: int, tokens: int, capability: float, fused: bool) -> list[Operator]:
    """Return the kernels of a forward pass over ``batch`` sequences of ``tokens``, on GPUs of a compute capability.

    ``fused``: a compiler has made one kernel of what stands between two products (scale, mask and softmax; the
    activation), as ``torch.compile`` does.
    """
    return _Pass(network, batch, tokens, capability, fused).operators()


@dataclass(frozen=True)
class _Pass:
    network: Forward
    batch: int
    length: int
    capability: float
    fused: bool

    @property
    def tokens(self) -> float:
        return float(self.batch * self.length)

    def operators(self) -> list[Operator]:
        """The kernels in order, those of a layer with the number of layers."""
        net = self.network
        layers = [operator.times(net.layers) for operator in self._layer()]
        if net.encoder:
            return layers
        return [
            *layers,
            self._vector("final_norm", "layernorm", self.tokens, net.hidden),
            self._linear("logits", net.vocab, net.hidden),
        ]

    def _layer(self) -> Iterator[Operator]:
        net, tokens = self.network, self.tokens
        before = () if net.encoder else ("attention_norm", "mlp_norm")
        yield from (self._vector(name, "layernorm", tokens, net.hidden) for name in before)
        yield from self._attention()
        yield self._linear("output_projection", net.hidden, net.hidden)
        yield self._vector("residual", "add", tokens, net.hidden).times(2)
        yield self._linear("up_projection", net.ffn, net.hidden)
        yield from self._activation()
        yield self._linear("down_projection", net.hidden, net.ffn)
        after = ("attention_norm", "mlp_norm") if net.encoder else ()
        yield from (self._vector(name, "layernorm", tokens, net.hidden) for name in after)

    def _attention(self) -> Iterator[Operator]:
        net, length = self.network, self.length
        rows, head = float(self.batch * net.heads * length), net.hidden // net.heads
        if net.encoder:
            yield self._linear("qkv_projection", net.hidden, net.hidden).times(3)
        else:
            yield self._linear("qkv_projection", 3 * net.hidden, net.hidden)
        yield self._vector("layouts", COPY, self.tokens, net.hidden).times(1 if self.fused else 3)
        yield self._batched("scores", length, length, head)
        if not self.fused:
            yield self._vector("scale", "mul_scalar", rows, length)
            yield self._vector("mask", "add", rows, length)
        yield self._vector("softmax", "softmax", rows, length)
        yield self._batched("values", length, head, length)
        yield self._vector("merge", COPY, self.tokens, net.hidden)

    def _activation(self) -> Iterator[Operator]:
        kernel = self.network.activation.removesuffix("_tanh")
        apart = not self.fused and kernel != self.network.activation
        for name in TANH if apart else (kernel,):
            yield self._vector("activation", name, self.tokens, self.network.ffn)

    def _linear(self, name: str, columns: float, depth: float) -> Operator:
        return self._product(name, _gemm(self.tokens, columns, depth, 1.0), FOREVER)

    def _batched(self, name: str, rows: float, columns: float, depth: float) -> Operator:
        product = _gemm(rows, columns, depth, float(self.batch * self.network.heads))
        return self._product(name, product, 2.0 * product.b_bytes)

    def _product(self, name: str, gemm: Gemm, weights: float) -> Operator:
        """A product whose inputs the kernel before has just written; ``weights``: bytes since B was touched."""
        placed = replace(gemm, a_distance=2.0 * gemm.a_bytes, b_distance=weights, out_distance=2.0 * gemm.out_bytes)
        return gemm_operator(name, placed, (self.capability, self.capability), False, PHASE, library=TUNED)

    def _vector(self, name: str, kernel: str, rows: float, columns: float) -> Operator:
        touched = 2.0 * rows * columns * BYTES
        return vector_operator(
            name,
            kernel,
            rows,
            columns,
            DTYPE,
            "pytorch_vector",
            input_distance=touched,
            out_distance=touched,
            phase=PHASE,
        )


def _gemm(m: float, n: float, k: float, batch: float) -> Gemm:
    return Gemm(m, n, k, batch, a=DTYPE, b=DTYPE, compute=DTYPE, out=DTYPE)
