"""Kernels that show one number of a GPU each: a chase of pointers latencies, grids of empty CTAs what a launch costs.

Both are Pallas kernels: a loop of XLA's own would be a launch a hop.
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
from dse.workload.microbenchmarks import LINE, hops


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


def _call(kernel: Callable[..., None], interpret: bool, **options: Any) -> Callable[[Array], Array]:
    out = jax.ShapeDtypeStruct((1,), jnp.int32)
    return pl.pallas_call(kernel, out_shape=out, interpret=interpret, **options)


def _block(threads: int) -> dict[str, Any]:
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=threads // int(WARP_SIZE))}


def _follow(count: int, words: Any, out: Any) -> None:
    out[0] = lax.fori_loop(0, count, lambda _, place: words[place], jnp.int32(0))


def _copy_word(words: Any, out: Any) -> None:
    out[0] = words[0]
