"""A forward pass as PyTorch runs it: a kernel an operator, attention unfused, fp32 on CUDA cores or a narrower type."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.hardware.data_types import element_bytes
from dse.workload.operator import FOREVER, Operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED
from dse.workload.operators.vector import vector_operator

CUDA_CORES = "fp32"
"""The type whose products run on CUDA cores: PyTorch leaves TF32 off."""

PHASE = "forward"

COPY = "mul_scalar"
"""Stands for a copy into another layout: an array read, an array written."""

TANH = ("pow", "mul_scalar", "add", "mul_scalar", "tanh", "add_scalar", "mul", "mul_scalar")
"""The kernels of Hugging Face's ``gelu_new``, unfused: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""


@dataclass(frozen=True)
class Forward:
    """A transformer whose forward pass was timed: all tokens at once, no cache."""

    name: str
    title: str
    hidden: int  # [element] of the residual stream
    vocab: int  # [token]
    layers: tuple[tuple["EagerLayer", int], ...]  # kinds of layers, and how many there are of each
    head: bool  # whether every token's logits are computed


@cache
def forwards() -> dict[str, Forward]:
    """Return the known forward passes by name."""
    found = {}
    for row in read_table("networks/forwards.csv"):
        encoder = row["encoder"] == "1"
        layer = EagerLayer(int(row["heads"]), int(row["ffn"]), encoder, row["activation"])
        layers, name = ((layer, int(row["layers"])),), row["forward"]
        found[name] = Forward(name, row["name"], int(row["hidden"]), int(row["vocab"]), layers, head=not encoder)
    return found


def find_forward(name: str) -> Forward:
    """Return a forward pass by name; raises InputError."""
    if name not in forwards():
        raise InputError(f"no forward pass is known of {name!r}; {accepted(name, forwards())}")
    return forwards()[name]


def forward_operators(
    network: Forward, batch: int, tokens: int, capability: float, fused: bool, dtype: str = CUDA_CORES
) -> list[Operator]:
    """Return the kernels of a forward pass over ``batch`` sequences of ``tokens``, on GPUs of a compute capability.

    In the order they run, those of a kind of layer with the number of its layers. ``fused``: a compiler has made one
    kernel of what stands between two products (scale, mask and softmax; the activation), as ``torch.compile`` does.
    """
    step = EagerStep(batch, tokens, network.hidden, capability, fused, dtype)
    operators = [operator.times(count) for layer, count in network.layers for operator in layer.operators(step)]
    if network.head:
        operators.append(step.vector("final_norm", "layernorm", step.tokens, network.hidden))
        operators.append(step.linear("logits", network.vocab, network.hidden))
    return operators


@dataclass(frozen=True)
class EagerStep:
    """A forward pass as PyTorch launches it: the context of its layers, and a kernel for each operator of theirs."""

    batch: int  # sequences
    length: int  # [token] of a sequence
    hidden: int  # [element] of the residual stream
    capability: float  # compute capability of the GPU
    fused: bool  # whether a compiler has made one kernel of what stands between two products
    dtype: str = CUDA_CORES  # of weights and activations

    @property
    def tokens(self) -> float:
        """Tokens of all sequences."""
        return float(self.batch * self.length)

    def linear(self, name: str, columns: float, depth: float) -> Operator:
        """Return the product of all tokens with weights."""
        return self._product(name, self._gemm(self.tokens, columns, depth, 1.0), FOREVER)

    def batched(self, name: str, rows: float, columns: float, depth: float, heads: int) -> Operator:
        """Return a product of two activations for each of the heads."""
        product = self._gemm(rows, columns, depth, float(self.batch * heads))
        return self._product(name, product, 2.0 * product.b_bytes)

    def _product(self, name: str, gemm: Gemm, weights: float) -> Operator:
        """A product whose inputs the kernel before has just written; ``weights``: bytes since B was touched."""
        placed = replace(gemm, a_distance=2.0 * gemm.a_bytes, b_distance=weights, out_distance=2.0 * gemm.out_bytes)
        library = TUNED if self.dtype == CUDA_CORES else REPRESENTATIVE
        return gemm_operator(name, placed, (self.capability, self.capability), False, PHASE, library=library)

    def _gemm(self, m: float, n: float, k: float, batch: float) -> Gemm:
        return Gemm(m, n, k, batch, a=self.dtype, b=self.dtype, compute=self.dtype, out=self.dtype)

    def vector(self, name: str, kernel: str, rows: float, columns: float) -> Operator:
        """Return a vector kernel over what the kernel before has just written."""
        touched = 2.0 * rows * columns * element_bytes(self.dtype)
        return vector_operator(
            name,
            kernel,
            rows,
            columns,
            self.dtype,
            "pytorch_vector",
            input_distance=touched,
            out_distance=touched,
            phase=PHASE,
        )


@dataclass(frozen=True)
class EagerLayer:
    """A layer of attention and MLP without cache: of an encoder (BERT) or a decoder (GPT-2, OPT)."""

    heads: int
    ffn: int  # [element] between the projections of the MLP
    encoder: bool  # queries, keys and values are three products and norms follow the sums; else one, norms before
    activation: str  # gelu, gelu_tanh or relu

    def operators(self, step: EagerStep) -> Iterator[Operator]:
        """Yield the kernels of one layer in the order they run."""
        norms = [step.vector(name, "layernorm", step.tokens, step.hidden) for name in ("attention_norm", "mlp_norm")]
        yield from () if self.encoder else norms
        yield from self._attention(step)
        yield step.linear("output_projection", step.hidden, step.hidden)
        yield step.vector("residual", "add", step.tokens, step.hidden).times(2)
        yield step.linear("up_projection", self.ffn, step.hidden)
        kernel = self.activation.removesuffix("_tanh")
        unfused = not step.fused and kernel != self.activation
        yield from (step.vector("activation", name, step.tokens, self.ffn) for name in (TANH if unfused else (kernel,)))
        yield step.linear("down_projection", step.hidden, self.ffn)
        yield from norms if self.encoder else ()

    def _attention(self, step: EagerStep) -> Iterator[Operator]:
        length, rows, head = step.length, float(step.batch * self.heads * step.length), step.hidden // self.heads
        if self.encoder:
            yield step.linear("qkv_projection", step.hidden, step.hidden).times(3)
        else:
            yield step.linear("qkv_projection", 3 * step.hidden, step.hidden)
        yield step.vector("layouts", COPY, step.tokens, step.hidden).times(1 if step.fused else 3)
        yield step.batched("scores", length, length, head, self.heads)
        if not step.fused:
            yield step.vector("scale", "mul_scalar", rows, length)
            yield step.vector("mask", "add", rows, length)
        yield step.vector("softmax", "softmax", rows, length)
        yield step.batched("values", length, head, length, self.heads)
        yield step.vector("merge", COPY, step.tokens, step.hidden)
