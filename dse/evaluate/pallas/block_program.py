"""A partially evaluated program on a block of designs inside a Pallas kernel: the lines of
:mod:`dse.evaluate.partial_evaluation`, one after the other, on vectors of designs.

Nothing is written for a GPU alone but some operations in the instructions that NVIDIA's GPUs have for them: a product
that is added to, or subtracted from, a term; reciprocals, roots, exponentials and logarithms.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.pallas import triton

from dse.evaluate.lines import Line, Parts, Rows
from dse.evaluate.partial_evaluation import Program

FUSED = {
    ("add", 0): "fma.rn.ftz.f32 $0, $1, $2, $3;",
    ("add", 1): "fma.rn.ftz.f32 $0, $1, $2, $3;",
    ("sub", 0): "{.reg .f32 t; neg.f32 t, $3; fma.rn.ftz.f32 $0, $1, $2, t;}",
    ("sub", 1): "{.reg .f32 t; neg.f32 t, $1; fma.rn.ftz.f32 $0, t, $2, $3;}",
}
"""Sum or difference, and which operand of it is the product -> one instruction for both (PTX)."""

ALONE = {
    "reciprocal": "rcp.approx.ftz.f32 $0, $1;",
    "sqrt": "sqrt.approx.ftz.f32 $0, $1;",
    "exp": "{.reg .f32 t; mul.rn.ftz.f32 t, $1, 0f3FB8AA3B; ex2.approx.ftz.f32 $0, t;}",
    "log": "{.reg .f32 t; lg2.approx.ftz.f32 t, $1; mul.rn.ftz.f32 $0, t, 0f3F317218;}",
}
"""Operation -> instructions (PTX); exp and log by those of base 2, to 3e-7."""


class BlockProgram:
    """A program on a block of designs, each with one kernel; terms are arrays (designs,), or numbers that all share.

    ``common``: as in :meth:`Program.table`. ``assembly``: with instructions of NVIDIA's GPUs. ``rows``: the terms of
    the kernels, (kernels, terms).

    Raises TypeError where a term is no number.
    """

    def __init__(self, program: Program, common: int = 0, *, assembly: bool) -> None:
        self._parts: Parts = program.parts(common)
        self._assembly = assembly
        every = [self._parts.lines[place] for place in (*self._parts.designs, *self._parts.pairs)]
        if any(not line.name and line.given for line in every) or any(x.values.ndim > 1 for x in self._parts.rows):
            raise TypeError("a term of a model of one kernel on one GPU is an array")

    @cached_property
    def rows(self) -> np.ndarray:
        """The terms of the kernels, (kernels, terms); one that is true or false is written as 1 or 0."""
        rows = [row.values.astype(np.float32) for row in self._parts.rows]
        return np.stack(rows, axis=1) if rows else np.zeros((1, 1), np.float32)  # no kernel is given an empty array

    @property
    def terms(self) -> tuple[int, int]:
        """How many terms of the kernels there are, and of a kernel and a group."""
        return len(self._parts.rows), len(self._parts.columns)

    @property
    def results(self) -> int:
        """How many numbers the function returns."""
        return len(self._parts.results)

    @property
    def not_zero(self) -> set[int]:
        """Which of them are not known to be 0, by number."""
        return {
            n for n, x in enumerate(self._parts.results) if isinstance(x, int | Rows) or np.ndim(x) or float(x) != 0.0
        }

    @property
    def arguments(self) -> set[int]:
        """The arguments that were not known, and that results need, by number."""
        places = (*self._parts.designs, *self._parts.pairs)
        return {x for x in places if not self._parts.lines[x].given}

    def result(self, numbers: Sequence[Array]) -> Any:
        """Return numbers as what the function returns."""
        return jax.tree.unflatten(self._parts.tree, numbers)

    def of_designs(self, given: Mapping[int, Array]) -> dict[int, Array]:
        """Return what pairs need of the designs, by place; ``given``: the arguments that were not known."""
        found = dict(given)
        for place in self._parts.designs:
            if place not in found:
                found[place] = self._value(place, found)
        return found

    def of_pairs(self, designs: Mapping[int, Array], rows: Sequence[Array], columns: Sequence[Array]) -> Any:
        """Return what the function returns; ``designs``: :meth:`of_designs`; ``rows`` and ``columns``: terms of the
        design's kernel, and of its kernel and group."""
        lines = self._parts.lines
        kernel = {x.key: _typed(row, x) for x, row in zip(self._parts.rows, rows, strict=True)}
        found: dict[Any, Any] = dict(designs)
        for place, column in zip(self._parts.columns, columns, strict=True):
            found[place] = column > 0.5 if lines[place].is_bool else column
        found |= kernel
        for place in self._parts.pairs:
            if place not in self._fused and place not in found:
                found[place] = self._value(place, found)
        results = [found[_key(x)] if isinstance(x, int | Rows) else x for x in self._parts.results]
        return self.result(results)

    def _value(self, place: int, found: Mapping[Any, Any]) -> Array:
        """Return the value of a line; ``found``: what it is given."""
        line = self._parts.lines[place]
        given = [found[_key(x)] if isinstance(x, int | Rows) and _key(x) in found else x for x in line.given]
        if not self._assembly:
            return _mapped(line.apply, given)
        if line.name in ALONE:
            return _instruction(ALONE[line.name], given)
        product = self._product(line)
        if product is None:
            return _mapped(line.apply, given)
        factors = [found[_key(x)] if isinstance(x, int | Rows) else x for x in self._factors(line, product)]
        other = given[1 - product]
        return _instruction(FUSED[line.name, product], [*factors, other])

    def _factors(self, line: Line, product: int) -> tuple[Any, ...]:
        place = line.given[product]
        assert isinstance(place, int)
        return self._parts.lines[place].given

    def _product(self, line: Line) -> int | None:
        """Return which operand of a sum or difference is a product that nothing else uses; None: none is."""
        if line.name not in ("add", "sub"):
            return None
        return next((n for n, x in enumerate(line.given) if isinstance(x, int) and x in self._fused), None)

    @cached_property
    def _fused(self) -> set[int]:
        """The products of pairs that nothing uses but one sum or difference."""
        if not self._assembly:
            return set()
        lines, pairs, fused = self._parts.lines, set(self._parts.pairs), set()
        uses = Counter(x for place in pairs for x in lines[place].given if isinstance(x, int))
        uses.update(x for x in self._parts.results if isinstance(x, int))
        for place in self._parts.pairs:
            line = lines[place]
            if line.name in ("add", "sub"):
                able = [x for x in line.given if isinstance(x, int) and x in pairs and lines[x].name == "mul"]
                fused |= {x for x in able[:1] if uses[x] == 1}
        return fused


def _key(x: Any) -> Any:
    return x.key if isinstance(x, Rows) else x


def _typed(row: Array, of: Rows) -> Array:
    """Return a term of kernels as what it was before it was written as a number."""
    return row > 0.5 if of.values.dtype == bool else row.astype(jax.dtypes.canonicalize_dtype(of.values.dtype))


def _mapped(apply: Callable[..., Any], given: Sequence[Any]) -> Array:
    """Return an operation of numbers on arrays (designs,) and numbers."""
    axes = [0 if np.ndim(x) else None for x in given]
    return jax.vmap(apply, axes)(*given) if 0 in axes else apply(*given)


def _instruction(assembly: str, given: Sequence[Any]) -> Array:
    """Return what an instruction makes of arrays (designs,) and numbers."""
    shape = np.broadcast_shapes(*map(np.shape, given))
    operands = [jnp.broadcast_to(jnp.asarray(x, jnp.float32), shape) for x in given]
    constraints = ",".join(["=f", *"f" * len(operands)])
    result = jax.ShapeDtypeStruct(shape, jnp.float32)
    return triton.elementwise_inline_asm(
        assembly, args=operands, constraints=constraints, pack=1, result_shape_dtypes=[result]
    )[0]
