"""Functions of scalars on arrays: mapped inside a program, and programs called with a fixed number of rows."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.evaluate.platform import traced_platform

T = TypeVar("T")


def over_arrays(function: Callable[..., T], *records: Any) -> T:
    """Return what a function of records of scalars gives for records of arrays, whose shapes broadcast as NumPy's do.

    A term is computed on the axes that it depends on, and on no others: kernels (kernels,) on designs (designs, 1) give
    arrays (designs, kernels), in which a term of the design alone is computed once a design.
    """
    leaves, tree = jax.tree.flatten(records)
    shape = np.broadcast_shapes(*map(np.shape, leaves))
    mapped: Callable[..., T] = lambda *scalars: function(*jax.tree.unflatten(tree, scalars))  # noqa: E731
    # Axes count from the last one, -1; along those in which one value stands for all, an array is not mapped.
    varying = [{k for k in range(-np.ndim(x), 0) if np.shape(x)[k] == shape[k]} for x in leaves]
    for axis in range(-1, -len(shape) - 1, -1):
        mapped = jax.vmap(mapped, [0 if axis in axes else None for axes in varying])
    alike = [tuple({*range(-np.ndim(x), 0)} - axes) for x, axes in zip(leaves, varying, strict=True)]
    return mapped(*map(jnp.squeeze, leaves, alike))


def with_kernel_axis(gpus: T) -> T:
    """Return a record of arrays (designs,) as arrays (designs, 1), to be mapped with kernels; numbers stay."""
    return jax.tree.map(lambda x: x[:, None] if np.ndim(x) else x, gpus)


def in_blocks(program: Callable[..., T], size: int, *records: Any) -> T:
    """Return what ``program`` gives for records of NumPy arrays (rows, ...), called with ``size`` rows at a time.

    The last row is repeated to fill the last block, so that one compiled program serves any number of rows above 0.
    """
    count = len(jax.tree.leaves(records)[0])
    blocks = []
    for start in range(0, count, size):
        block = jax.tree.map(lambda x, start=start: _filled(x[start : start + size], size), records)
        blocks.append(jax.tree.map(np.asarray, program(*block)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *blocks)


def _filled(rows: np.ndarray, size: int) -> np.ndarray:
    fill = size - len(rows)
    return np.concatenate([rows, np.repeat(rows[-1:], fill, axis=0)]) if fill else np.asarray(rows)


def float_type() -> type:
    """Return the float type of a batch: 32 bits, unless JAX is set to 64."""
    return np.float64 if jax.config.jax_enable_x64 else np.float32  # pyright: ignore[reportAttributeAccessIssue]


def in_parts(function: Callable[..., list[Array]], arrays: list[Array], *of_parts: Any) -> list[Array]:
    """Return ``function(arrays)`` of arrays (..., designs), some of the designs after the others in one program.

    ``of_parts``: further arguments, whose arrays (parts, ...) hold one value for each part.
    What a loop returns is there once; a compiler would compute it anew, as far as that is cheap, wherever it is used.
    Where the platform has no parts, all are taken at once.
    """
    count, parts = arrays[0].shape[-1], traced_platform().parts
    if parts == 1:
        return _at_once(function, arrays, of_parts)
    size = count // parts if count % parts == 0 else count

    def cut(number: Array) -> list[Array]:
        own = jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, number, keepdims=False), of_parts)
        return function([lax.dynamic_slice_in_dim(x, number * size, size, -1) for x in arrays], *own)

    def part(number: Array, whole: list[Array]) -> list[Array]:
        new = cut(number)
        return [lax.dynamic_update_slice_in_dim(w, x, number * size, -1) for w, x in zip(whole, new, strict=True)]

    shapes = jax.eval_shape(cut, 0)
    return lax.fori_loop(0, count // size, part, [jnp.zeros((*x.shape[:-1], count), x.dtype) for x in shapes])


def _at_once(function: Callable[..., list[Array]], arrays: list[Array], of_parts: tuple[Any, ...]) -> list[Array]:
    """Return the same without a loop: parts are an axis beside that of their designs."""
    leaves = jax.tree.leaves(of_parts)
    if not leaves:
        return function(arrays, *of_parts)
    parts = len(leaves[0])
    cut = [jnp.reshape(x, (*x.shape[:-1], parts, -1)) for x in arrays]
    every = jax.vmap(function, (-2, *[0] * len(of_parts)), -2)(cut, *of_parts)
    return [jnp.reshape(x, (*x.shape[:-2], -1)) for x in every]


def needed_by(function: Callable[..., Any], *shapes: Any) -> tuple[Any, ...]:
    """Return which arrays of its arguments lead to what a function returns: trees as the arguments', of True and False.

    ``shapes``: the arguments, an array by its shape and type.
    """
    jaxpr = jax.make_jaxpr(function)(*shapes).jaxpr
    needed = set(map(id, jaxpr.outvars))
    for equation in reversed(jaxpr.eqns):
        if any(id(x) in needed for x in equation.outvars):
            needed |= set(map(id, equation.invars))
    return jax.tree.unflatten(jax.tree.structure(shapes), [id(x) in needed for x in jaxpr.invars])
