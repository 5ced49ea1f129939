"""The measured operators as JAX functions, with the shapes of their operands."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.measurement.microbenchmarks import chase, empty_grid, loop_shape, ring, unit_loop
from dse.measurement.tasks import Task
from dse.workload.microbenchmarks import CHASE, GRID, LOOPS

PALLAS = "pallas"
"""Implementation of kernels that are written here."""

DTYPES: dict[str, Any] = {"bf16": jnp.bfloat16, "fp16": jnp.float16, "fp32": jnp.float32, "int32": jnp.int32}


@dataclass(frozen=True)
class Measured:
    """An operator at a shape."""

    call: Callable[..., Any]  # operands -> its result or results
    shapes: tuple[tuple[int, ...], ...]  # of the operands
    dtype: Any
    weights: tuple[bool, ...]  # which operands are a layer's weights
    op: str  # name in the table
    implementation: str  # whose kernels run
    fill: Callable[[], Any] | None = None  # the one operand, where random numbers will not do

    def operand_bytes(self) -> list[int]:
        """Return the size of each operand [B]."""
        size = jnp.dtype(self.dtype).itemsize
        return [size * _count(shape) for shape in self.shapes]

    def out_bytes(self) -> int:
        """Return the size of the result [B]."""
        out = jax.eval_shape(self.call, *(jax.ShapeDtypeStruct(shape, self.dtype) for shape in self.shapes))
        return sum(_count(array.shape) * array.dtype.itemsize for array in jax.tree.leaves(out))


def _count(shape: tuple[int, ...]) -> int:
    product = 1
    for side in shape:
        product *= side
    return product


def measured(task: Task, attention: str = "xla", interpret: bool = False) -> Measured:
    """Return the function of a task; ``attention``: cudnn or xla; ``interpret``: Pallas' kernels without a GPU."""
    dtype, shape = DTYPES[task.dtype], task.shape
    if task.op == "gemm":
        sides = (shape["m"], shape["k"]), (shape["k"], shape["n"])
        return Measured(jnp.dot, sides, dtype, (False, True), "gemm", "xla: cuBLAS or Triton, by autotuning")
    if task.kind == "attention":
        return _attention(task, dtype, attention)
    if task.op in (CHASE, GRID):
        return _microbenchmark(task.op, shape["rows"], shape["cols"], interpret)
    if task.op in LOOPS:
        call = unit_loop(task.op, shape["rows"], shape["cols"], interpret)
        return Measured(call, (loop_shape(task.op),), dtype, (False,), task.op, PALLAS)
    sides, call = (shape["rows"], shape["cols"]), VECTOR[task.op]
    inputs = 2 if task.op in TWO else 1
    return Measured(call, (sides,) * inputs, dtype, (False,) * inputs, task.op, "xla fusion")


def _microbenchmark(op: str, rows: int, cols: int, interpret: bool) -> Measured:
    """Return a chase through ``rows`` lines of ``cols`` words, or a grid of ``rows`` CTAs of ``cols`` threads."""
    if op == CHASE:
        call, words, fill = chase(rows, interpret), rows * cols, partial(ring, rows)
    else:
        call, words, fill = empty_grid(rows, cols, interpret), 1, partial(np.zeros, 1, np.int32)
    return Measured(call, ((words,),), jnp.int32, (False,), op, PALLAS, fill)


def _attention(task: Task, dtype: Any, implementation: str) -> Measured:
    """Return attention on (batch, tokens, heads, size); XLA runs it as several kernels, so it has a name of its own."""
    s = task.shape
    query = s["batch"], s["seq_q"], s["heads"], s["head_dim"]
    keys = s["batch"], s["seq_kv"], s["kv_heads"], s["head_dim"]
    causal = s["seq_q"] > 1  # the one token of a decode sees every key

    def call(q: Array, k: Array, v: Array) -> Array:
        how: Any = implementation
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=how)

    op = task.op if implementation == "cudnn" else f"{task.op}_xla"
    return Measured(call, (query, keys, keys), dtype, (False,) * 3, op, implementation)


def _rmsnorm(x: Array) -> Array:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def _layernorm(x: Array) -> Array:
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-6)).astype(x.dtype)


VECTOR: dict[str, Callable[..., Any]] = {
    "add": jnp.add,
    "mul": jnp.multiply,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu_and_mul": lambda gate, up: jax.nn.silu(gate) * up,
    "rmsnorm": _rmsnorm,
    "add_rmsnorm": lambda x, y: _with_sum(x + y),
    "layernorm": _layernorm,
    "softmax": lambda x: jax.nn.softmax(x.astype(jnp.float32), axis=-1).astype(x.dtype),
    "copy": jnp.negative,  # a copy would be no kernel: XLA hands the operand on
}

TWO = ("add", "mul", "silu_and_mul", "add_rmsnorm")


def _with_sum(total: Array) -> tuple[Array, Array]:
    """The sum and its norm, both written."""
    return total, _rmsnorm(total)
