"""A function of one kernel and one design on all pairs of both, each operation on the smallest side that it needs.

``jax.vmap`` alone computes a term of one side once for that side. What a compiler then leaves in the pairs' loop, this
module takes out: terms that come out the same for all kernels, with the products, sums and choices that they decide,
and divisions, of which a CPU does one in the time of thirty multiplications. Results differ by rounding alone.

Designs may come in groups that have some of their numbers in common (:mod:`dse.evaluate.groups`). What depends on a
kernel and on such numbers is then computed once for a kernel and a group, into a table that the pairs read.
"""

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.evaluate.lines import Line, Operations, Parts, Rows, Side
from dse.evaluate.platform import traced_platform

SAME = ("copy", "copy_p", "stop_gradient", "optimization_barrier")
"""Primitives that return what they are given."""

CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint")
"""Primitives that stand for the program they hold."""

COMMUTE = ("add", "mul", "max", "min", "and", "or", "eq", "ne")

NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "max": np.maximum,
    "min": np.minimum, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "exp": np.exp, "log": np.log,
    "log1p": np.log1p, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal, "and": operator.and_, "or": operator.or_, "not": np.logical_not,
    "select_n": lambda chosen, if_false, if_true: np.where(chosen, if_true, if_false), "reciprocal": np.reciprocal,
}  # fmt: skip
"""Primitive -> the same in NumPy, for what is known when the program is built; others run as JAX has them."""

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Program:
    """``function`` of scalars, simplified for what is known of them; call it with what is not.

    ``given``, one for each argument: a known number; a NumPy array (kernels,); Side.DESIGN for an array (designs,) yet
    to come, or Side.PAIR for one of pairs. ``designs_minor``: pairs are arrays (kernels, designs), else (designs,
    kernels).
    """

    def __init__(self, function: Callable[..., Any], given: Sequence[Any], kernels: int, designs_minor: bool) -> None:
        dtype = jnp.zeros(()).dtype
        scalars = [jax.ShapeDtypeStruct((), dtype)] * len(given)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*scalars)
        self._tree = jax.tree.structure(shape)
        self._kernels, self._designs_minor = kernels, designs_minor
        self._writer = _Writer([x for x in given if isinstance(x, Side)])
        places = iter(range(len(given)))
        inputs = [next(places) if isinstance(x, Side) else _constant(np.asarray(x, dtype)) for x in given]
        with np.errstate(all="ignore"):
            self._results = self._writer.through(closed.jaxpr, closed.consts, inputs)

    def __call__(self, given: Sequence[Array], designs: int, table: Array | None = None, common: int = 0) -> Any:
        """Return what the function returns, arrays of pairs; ``given`` are the arrays that were not known.

        ``common``: bit n is set where argument n of ``given`` is a number, which all of the designs have in common;
        ``table``: of these numbers (:meth:`table`), (terms, kernels).
        """
        lines, needed, side = self._writer.lines, self._needed, partial(_side_of, common)
        found: dict[Hashable, Array] = {place: jnp.asarray(x) for place, x in enumerate(given)}
        for place, line in enumerate(lines[len(given) :], len(given)):
            if place in needed and not side(line) & Side.KERNEL:
                values = [found[x] if isinstance(x, int) else x for x in line.given]
                axes = [0 if isinstance(x, int) and side(lines[x]) & Side.MEMBER else None for x in line.given]
                value = jax.vmap(line.apply, axes)(*values) if 0 in axes else line.apply(*values)
                missing = 0 not in axes and side(line) & Side.MEMBER
                found[place] = jnp.broadcast_to(value, (designs, *value.shape)) if missing else value
        if table is not None:
            found |= {place: self._column(table, term, place) for term, place in enumerate(self._columns(common))}
        for x in [x for place in needed for x in lines[place].given] + self._results:
            if isinstance(x, Rows):
                found[_key(x)] = jnp.asarray(x.values)
        used = self._used(common)
        inputs = {key: x for key, x in found.items() if not isinstance(key, int) or key in used}
        sides = {k: side(lines[k]) if isinstance(k, int) else Side.KERNEL for k in inputs}
        todo = [(p, line) for p, line in enumerate(lines) if p in needed and p not in found and side(line) == Side.PAIR]

        def pair(*values: Array) -> list[Any]:
            at: dict[Hashable, Any] = dict(zip(inputs, values, strict=True))
            for place, line in todo:
                at[place] = line.apply(*(at.get(_key(x), x) for x in line.given))
            return [at.get(_key(x), x) for x in self._results]

        by_design = [0 if side & Side.MEMBER else None for side in sides.values()]
        by_kernel = [0 if side & Side.KERNEL else None for side in sides.values()]
        shape = (self._kernels, designs) if self._designs_minor else (designs, self._kernels)
        inner, outer = (by_design, by_kernel) if self._designs_minor else (by_kernel, by_design)
        pairs = jax.vmap(jax.vmap(pair, inner, axis_size=shape[1]), outer, axis_size=shape[0])
        return jax.tree.unflatten(self._tree, pairs(*inputs.values()))

    @property
    def results(self) -> int:
        """How many numbers the function returns."""
        return len(self._results)

    def table(self, given: Sequence[np.ndarray | None], common: int) -> np.ndarray:
        """Return the terms of a kernel and a group that pairs read, (groups, terms, kernels).

        ``given``: the ``common`` arguments of groups, (groups,); the others are not looked at. In NumPy, since it is
        done once for a combination of numbers: nothing is compiled.
        """
        lines, columns = self._writer.lines, self._columns(common)
        found: dict[int, np.ndarray] = {place: x[:, None] for place, x in enumerate(given) if x is not None}
        with np.errstate(all="ignore"):
            for place in sorted(set(_leading_to(lines, columns)) - found.keys()):
                values = [found[x] if isinstance(x, int) else _value(x) for x in lines[place].given]
                found[place] = np.asarray(NUMPY[lines[place].name](*values))
        groups = next((len(x) for x in given if x is not None), 0)
        table = np.zeros((groups, len(columns), self._kernels), jnp.zeros(()).dtype)
        for term, place in enumerate(columns):
            table[:, term] = np.nan_to_num(found[place], nan=0.0)
        return table

    def parts(self, common: int) -> Parts:
        """Return what is computed where the ``common`` arguments are common to groups of designs."""
        lines, used = self._writer.lines, self._used(common)
        pairs = sorted(x for x in self._needed if _side_of(common, lines[x]) == Side.PAIR)
        designs = _leading_to(lines, [x for x in used if not lines[x].side & Side.KERNEL])
        read = [x for place in pairs for x in lines[place].given] + self._results
        rows = {x.key: x for x in read if isinstance(x, Rows)}
        return Parts(
            lines, sorted(designs), pairs, self._columns(common), list(rows.values()), self._results, self._tree
        )

    def operations(self, common: int) -> Operations:
        """Return the operations, by primitive, where the ``common`` arguments are common to groups of designs."""
        pairs, tabulated = Counter(), Counter()
        for place in self._needed:
            line = self._writer.lines[place]
            if line.side == Side.PAIR:
                (pairs if _side_of(common, line) == Side.PAIR else tabulated)[line.name] += self._kernels
        return Operations(pairs, tabulated, len(self._columns(common)) * self._kernels)

    def _column(self, table: Array, term: int, place: int) -> Array:
        """Return a term of a table (terms, kernels); one that is true or false is written as 1 or 0."""
        return table[term] > 0.5 if self._writer.lines[place].is_bool else table[term]

    @cached_property
    def _needed(self) -> set[int]:
        """The places of the lines that lead to results."""
        return set(_leading_to(self._writer.lines, [x for x in self._results if isinstance(x, int)]))

    def _used(self, common: int) -> set[int]:
        """The places that pairs, or the results, use."""
        lines = self._writer.lines
        of_pairs = [lines[place] for place in self._needed if _side_of(common, lines[place]) == Side.PAIR]
        return {x for x in [x for line in of_pairs for x in line.given] + self._results if isinstance(x, int)}

    def _columns(self, common: int) -> list[int]:
        """The places of the terms of a kernel and a group that pairs read, in order."""
        return sorted(x for x in self._used(common) if _side_of(common, self._writer.lines[x]) == Side.TABLE)


class _Writer:
    """The lines written so far; those of the inputs come first."""

    def __init__(self, inputs: Sequence[Side]) -> None:
        self.lines = [Line("", lambda x: x, (), side, 1 << place, False) for place, side in enumerate(inputs)]
        self._never = 1 << len(inputs)  # an argument that no group has in common
        self._line_of: dict[Hashable, int] = {}

    def through(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """Write the equations of a jaxpr with these inputs; return its outputs."""
        env = dict(zip(jaxpr.invars, inputs, strict=True))
        env |= {var: np.asarray(value) for var, value in zip(jaxpr.constvars, consts, strict=True)}

        def value(atom: Any) -> Any:
            return np.asarray(atom.val) if hasattr(atom, "val") else env[atom]

        for equation in jaxpr.eqns:
            given = [value(atom) for atom in equation.invars]
            found = self._results(equation, given)
            env |= dict(zip(equation.outvars, found, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _results(self, equation: Any, given: list[Any]) -> list[Any]:
        if equation.primitive.name in CALLS:
            inner = equation.params.get("jaxpr") or equation.params["call_jaxpr"]
            return self.through(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given)
        if equation.primitive.name == "scan" and _carries_all(equation):  # a fori_loop
            return self._repeated(equation.params, given)
        if equation.primitive.multiple_results:
            raise TypeError(f"{equation.primitive} in a model of one kernel on one GPU")
        return [self._equation(equation, given)]

    def _repeated(self, params: dict[str, Any], given: list[Any]) -> list[Any]:
        """Write a loop that is taken a known number of times, one time after the other; return what it carries."""
        before = len(given) - len(params["jaxpr"].jaxpr.outvars)
        consts, carried = given[:before], given[before:]
        for _ in range(params["length"]):
            carried = self.through(params["jaxpr"].jaxpr, params["jaxpr"].consts, [*consts, *carried])
        return carried

    def _equation(self, equation: Any, given: list[Any]) -> Any:
        name, params, shape = equation.primitive.name, equation.params, equation.outvars[0].aval.shape
        if name in SAME or (name in ("broadcast_in_dim", "squeeze", "reshape") and _scalar(equation)):
            return given[0]
        if not any(isinstance(x, int) for x in given):
            return _computed(equation.primitive, params, given)
        if name == "convert_element_type" and equation.invars[0].aval.dtype == bool and shape == ():
            zero = np.zeros((), params["new_dtype"])
            return self.written("select_n", lax.select_n, [given[0], zero, zero + zero.dtype.type(1)])
        if name == "integer_pow" and params["y"] > 0:
            result = given[0]
            for _ in range(params["y"] - 1):
                result = self.written("mul", lax.mul, [result, given[0]])
            return result
        if name == "square":
            return self.written("mul", lax.mul, [given[0], given[0]])
        bind = lambda *x: equation.primitive.bind(*x, **params)  # noqa: E731
        return self.written(name if shape == () else "", bind, given, repr(sorted(params.items(), key=lambda p: p[0])))

    def written(self, name: str, apply: Callable[..., Any], given: list[Any], params: str = "") -> Any:
        """Return the result of an operation: what it simplifies to, an earlier line like it, or a new one."""
        simple = self._simplified(name, given)
        if simple is not None:
            return simple
        keys = [_key(x) for x in given]
        key = (name or id(apply), params, tuple(sorted(keys, key=repr) if name in COMMUTE else keys))
        if key not in self._line_of:
            self._line_of[key] = len(self.lines)
            self.lines.append(self._line(name, apply, given))
        return self._line_of[key]

    def _line(self, name: str, apply: Callable[..., Any], given: list[Any]) -> Line:
        side, inputs = Side.DESIGN, 0 if name in NUMPY else self._never
        for x in given:
            if isinstance(x, int):
                side, inputs = side | self.lines[x].side, inputs | self.lines[x].inputs
            elif isinstance(x, Rows):
                side |= Side.KERNEL
        last = given[-1]
        of_last = self.lines[last].is_bool if isinstance(last, int) else np.asarray(_value(last)).dtype == bool
        is_bool = name in COMPARISONS or (name in ("and", "or", "not", "select_n") and of_last)
        return Line(name, apply, tuple(given), side, inputs, bool(is_bool))

    def _simplified(self, name: str, given: list[Any]) -> Any:
        """Return what an operation comes to where a number, or which terms meet, decides it; else None."""
        if name == "mul":
            return next((x for x in given if _is(x, 0)), _other(given, 1))
        if name == "add":
            return _other(given, 0)
        if name == "sub" and _is(given[1], 0):
            return given[0]
        if name == "div":
            return self._divided(*given)
        if name == "select_n" and len(given) == 3:
            chosen, if_false, if_true = given
            if not isinstance(chosen, int | Rows):
                return if_true if bool(chosen) else if_false
            return if_true if _key(if_true) == _key(if_false) else None
        return None

    def _divided(self, a: Any, b: Any) -> Any:
        """Return a / b as a product with the reciprocal, which is that of one side where b is."""
        if _is(b, 1):
            return a
        if not isinstance(b, int):
            inverse = 1 / (b.values if isinstance(b, Rows) else b)
            if not np.all(np.isfinite(inverse)):
                return None
            return self.written("mul", lax.mul, [a, _constant(inverse) if isinstance(b, Rows) else inverse])
        inverse = self.written("reciprocal", reciprocal, [b])
        return inverse if _is(a, 1) else self.written("mul", lax.mul, [a, inverse])


def reciprocal(x: Array) -> Array:
    """Return 1 / x to 1e-7, where a division is slow without one: in 32 bits, a first guess from the exponent and three
    Newton steps."""
    if x.dtype != jnp.float32 or traced_platform().divides:
        return 1.0 / x
    bits = lax.bitcast_convert_type(x, jnp.int32)
    y = lax.bitcast_convert_type(np.int32(0x7EF311C7) - bits, jnp.float32)
    for _ in range(3):
        y = y * (np.float32(2) - x * y)
    return y


def _side_of(common: int, line: Line) -> Side:
    """Return the side of a line where the arguments ``common`` (bits) are common to a group of designs."""
    return line.side if line.inputs & ~common else line.side & ~Side.MEMBER


def _value(x: Any) -> Any:
    return x.values if isinstance(x, Rows) else x


def _leading_to(lines: list[Line], results: list[int]) -> Iterator[int]:
    """The places of the lines that lead to results."""
    seen, left = set(), list(results)
    while left:
        place = left.pop()
        if place not in seen:
            seen.add(place)
            yield place
            left += [x for x in lines[place].given if isinstance(x, int)]


def _computed(primitive: Any, params: dict[str, Any], given: list[Any]) -> Any:
    """Return the result of an operation on known numbers and Rows."""
    values = list(map(_value, given))
    batched = any(isinstance(x, Rows) for x in given)
    scalars = all(np.ndim(x.values) == 1 if isinstance(x, Rows) else np.ndim(x) == 0 for x in given)
    name = primitive.name
    if scalars and name in NUMPY and (name != "select_n" or len(values) == 3):
        found = NUMPY[name](*values)
    elif scalars and name == "convert_element_type":
        found = np.asarray(values[0]).astype(params["new_dtype"])
    else:
        axes = [0 if isinstance(x, Rows) else None for x in given]
        bind = lambda *x: primitive.bind(*x, **params)  # noqa: E731
        with jax.ensure_compile_time_eval():
            found = jax.vmap(bind, axes)(*values) if batched else bind(*values)
            found = np.asarray(found)
    return _constant(np.asarray(found)) if batched else np.asarray(found)


def _constant(values: np.ndarray) -> Any:
    """Return one number where all kernels have the same, else Rows."""
    if values.ndim == 0:
        return values
    return values[0] if np.all(values == values[:1]) else Rows(values)


def _carries_all(equation: Any) -> bool:
    """Whether a scan reads no arrays row by row, and returns none: they would have one axis more outside it."""
    inner = equation.params["jaxpr"].jaxpr
    pairs = [(equation.invars, inner.invars), (equation.outvars, inner.outvars)]
    return all([x.aval.shape for x in one] == [x.aval.shape for x in other] for one, other in pairs)


def _scalar(equation: Any) -> bool:
    return equation.invars[0].aval.shape == () == equation.outvars[0].aval.shape


def _key(x: Any) -> Hashable:
    if isinstance(x, int):
        return x
    return x.key if isinstance(x, Rows) else ("known", np.asarray(x).dtype.str, np.asarray(x).tobytes())


def _is(x: Any, number: float) -> bool:
    return not isinstance(x, int | Rows) and np.ndim(x) == 0 and bool(x == number)


def _other(given: list[Any], number: float) -> Any:
    """Return the operand beside one that is ``number``; None where neither is."""
    if _is(given[0], number):
        return given[1]
    return given[0] if _is(given[1], number) else None
