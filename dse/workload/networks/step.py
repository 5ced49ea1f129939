"""What a layer knows of the step that it runs in, and the kernels that serving engines make of a layer's parts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.operator import Operator
from dse.workload.operators.collective import all_reduce_operator
from dse.workload.operators.expert_rows import ExpertRows
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator, vector_ops
from dse.workload.target import Target


@dataclass(frozen=True)
class Step:
    """One forward pass as one of ``gpus`` tensor-parallel GPUs runs it: the context that every kind of layer gets."""

    phase: str  # prefill or decode
    batch: int  # requests
    queries: int  # new tokens of a request
    keys: float  # tokens of a request with those before it
    hidden: int  # [element] of the residual stream
    norm: str  # the vector operator of every norm
    precision: Precision
    gpus: int
    target: Target
    step_bytes: float  # [B] between two uses of the same weight: all weights and the KV cache
    layer_bytes: float  # [B] between two uses of an activation's buffer: those of a mean layer
    ranks: int = 1  # GPUs that share out the experts of a mixture
    replicas: int = 1  # of attention, each of ``gpus`` with requests of its own
    routing: str = ""  # how tokens choose experts ("": not said)

    @property
    def rows(self) -> float:
        """Tokens that are computed."""
        return float(self.batch * self.queries)

    def activation_bytes(self, columns: float) -> float:
        """Return the bytes of an activation of so many elements a token."""
        return self.rows * columns * element_bytes(self.precision.output)

    def gemm(
        self,
        name: str,
        rows: float,
        columns: float,
        depth: float,
        batch: float = 1.0,
        filled: float = 1.0,
        groups: ExpertRows | None = None,
    ) -> Iterator[Operator]:
        """Yield a projection, after the quantisation of its input where activations are narrower than the stream.

        ``batch`` [1] of products of ``rows`` x ``columns`` x ``depth``; ``filled`` [1]: share of the rows that hold a
        token. ``groups``: rows of the products, where they are of experts.
        """
        p, tokens = self.precision, batch * rows * filled
        if p.activations != p.output:
            quantise = "elementwise_quant_bf16_fp8"
            yield self.vector(f"{name}_quantise", quantise, tokens, depth, out_dtype=p.activations)
        gemm = Gemm(
            rows,
            columns,
            depth,
            batch,
            p.activations,
            p.weights,
            p.compute,
            p.output,
            a_distance=2.0 * tokens * depth * element_bytes(p.activations),
            b_distance=self.step_bytes,
            out_distance=self.layer_bytes,
            filled=filled,
            groups=groups,
        )
        yield self.product(name, gemm)

    def unquantised(self, name: str, columns: float, depth: float, batch: float = 1.0) -> Operator:
        """Return ``batch`` projections of every token whose weights are as wide as the stream, whatever others' are."""
        p = self.precision.output
        gemm = Gemm(self.rows, columns, depth, batch, p, p, p, p)
        near = {"a_distance": 2.0 * gemm.a_bytes, "b_distance": self.step_bytes, "out_distance": self.layer_bytes}
        return self.product(name, replace(gemm, **near))

    def product(self, name: str, gemm: Gemm) -> Operator:
        """Return the operator of a matrix product from the target's library."""
        target = self.target
        return gemm_operator(name, gemm, target.capabilities, target.warpgroup, self.phase, library=target.library)

    def vector(self, name: str, op: str, rows: float, columns: float, **given: Any) -> Operator:
        """Return a vector kernel over what the kernel before it has just written.

        ``given``: arguments of :func:`~dse.workload.operators.vector.vector_operator` in place of the usual ones.
        """
        dtype = self.precision.output
        reads = given.get("inputs", vector_ops()[op].reads)
        touched = (reads + 1.0) * rows * columns * element_bytes(dtype)
        usual: dict[str, Any] = {"input_distance": touched, "out_distance": self.layer_bytes}
        return vector_operator(name, op, rows, columns, dtype, phase=self.phase, **usual | given)

    def stream_norm(self, name: str) -> Operator:
        """Return the norm of the residual stream, fused with the addition to it: two arrays in, two out."""
        fused = {"inputs": 2.0, "outputs": 2.0, "input_distance": self.layer_bytes / 2.0}
        return self.vector(name, self.norm, self.rows, self.hidden, **fused)

    def all_reduce(self, name: str) -> Iterator[Operator]:
        """Yield the sum of the residual stream over the GPUs, where there are several."""
        if self.gpus > 1:
            yield all_reduce_operator(name, self.activation_bytes(self.hidden), self.gpus, self.phase)


def refuse_uneven(count: int, what: str, gpus: int, name: str, title: str) -> None:
    """Raise InputError where ``gpus`` do not divide a ``count``; ``name`` of the workload, ``title`` of the network."""
    if count % gpus:
        raise InputError(f"{name}: tp={gpus} does not divide the {count} {what} of {title}; give a divisor of {count}")
