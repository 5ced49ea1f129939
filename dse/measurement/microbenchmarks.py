"""Kernels that show one number of a GPU each: a chase of pointers latencies, grids of empty CTAs what a launch costs,
loops of one unit its watts.

All are Pallas kernels: a loop of XLA's own would be a launch a hop.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl

from dse.base.units import WARP_SIZE
from dse.workload.microbenchmarks import BLOCK, FMA_STEPS, LINE, LOOPS, TILE, WARPS, hops

STRIDE = 1021
"""Blocks from one that a CTA reads to the next: odd, so that it passes all of a power of two."""


def ring(lines: int, seed: int = 0) -> np.ndarray:
    """Return words of which the first of each line holds the place of the next line's, in one cycle over all lines at
    random; shape (lines x LINE,)."""
    order = np.random.default_rng(seed).permutation(lines)
    words = np.zeros(lines * LINE, np.int32)
    words[order * LINE] = np.roll(order, -1) * LINE
    return words


def chase(lines: int, interpret: bool) -> Callable[[Array], Array]:
    """Return a kernel of one CTA that follows a ring: a hop waits for the load before it."""
    return _call(partial(_follow, hops(lines)), interpret)


def empty_grid(ctas: int, threads: int, interpret: bool) -> Callable[[Array], Array]:
    """Return a kernel whose CTAs read and write one word."""
    return _call(_copy_word, interpret, grid=(ctas,), **({} if interpret else _block(threads)))


def loop_shape(op: str) -> tuple[int, ...]:
    """Return the shape of the operand of a loop of LOOPS: two tiles, a block, or the words that are read."""
    return {"loop_tensor": (2, TILE, TILE), "loop_fp32": (BLOCK,)}.get(op, (LOOPS[op].words,))


def unit_loop(op: str, ctas: int, iterations: int, interpret: bool) -> Callable[[Array], Array]:
    """Return a kernel of LOOPS: ``ctas`` that do the same, ``iterations`` each; every CTA writes its result over the
    others'."""
    body = {"loop_tensor": _products, "loop_fp32": _multiply_adds}.get(op, _reads)
    shape = (TILE, TILE) if op == "loop_tensor" else (BLOCK,)
    out = jax.ShapeDtypeStruct(shape, jnp.float32)
    options = {} if interpret else _block(int(WARP_SIZE) * WARPS)
    return _call(partial(body, iterations), interpret, out, grid=(ctas,), **options)


def _call(
    kernel: Callable[..., None], interpret: bool, out: jax.ShapeDtypeStruct | None = None, **options: Any
) -> Callable[[Array], Array]:
    out = out or jax.ShapeDtypeStruct((1,), jnp.int32)
    return pl.pallas_call(kernel, out_shape=out, interpret=interpret, **options)


def _block(threads: int) -> dict[str, Any]:
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=threads // int(WARP_SIZE))}


def _follow(count: int, words: Any, out: Any) -> None:
    out[0] = lax.fori_loop(0, count, lambda _, place: words[place], jnp.int32(0))


def _copy_word(words: Any, out: Any) -> None:
    out[0] = words[0]


def _products(count: int, tiles: Any, out: Any) -> None:
    def one(_: Any, carried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        a, b, total = carried
        return b, a, total + jnp.dot(a, b, preferred_element_type=jnp.float32)  # swapped: no product is one of before

    start = tiles[0, :, :], tiles[1, :, :], jnp.zeros((TILE, TILE), jnp.float32)
    out[:, :] = lax.fori_loop(0, count, one, start)[2]


def _multiply_adds(count: int, block: Any, out: Any) -> None:
    def one(_: Any, x: Array) -> Array:
        for _ in range(FMA_STEPS):
            x = x * 0.9990234375 + 0.0009765625
        return x

    out[:] = lax.fori_loop(0, count, one, block[:])


def _reads(count: int, words: Any, out: Any) -> None:
    blocks, first = words.shape[0] // BLOCK, pl.program_id(0)

    def one(i: Array, total: Array) -> Array:
        place = (first + i * STRIDE) % blocks * BLOCK
        return total + words[pl.ds(place, BLOCK)]

    out[:] = lax.fori_loop(0, count, one, jnp.zeros(BLOCK, jnp.float32))
