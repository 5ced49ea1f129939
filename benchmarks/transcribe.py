"""The per-pair function as a user would have written it: its jaxpr written out as NumPy or numba source.

Every operation is sorted by what it depends on: nothing that varies, the design, the kernel, or both. NumPy gets arrays
of shape (designs, 1), (1, kernels) and (designs, kernels) by broadcasting; numba gets the terms of one side as arrays
and those of the pair inlined in a loop.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numba
import numpy as np

DESIGN, KERNEL = 1, 2
PAIR = DESIGN | KERNEL

COST = {
    "add": 1,
    "sub": 1,
    "mul": 1,
    "max": 1,
    "min": 1,
    "div": 1,
    "exp": 11,
    "log1p": 11,
    "log": 11,
    "pow": 22,
    "gather": 3,
}
"""Operations that count for the bound, and for how many (exponential 11, look-up 3; the rest are comparisons)."""

NUMPY = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})", "neg": "(-{0})",
    "max": "np.maximum({0}, {1})", "min": "np.minimum({0}, {1})", "floor": "np.floor({0})", "ceil": "np.ceil({0})",
    "sqrt": "np.sqrt({0})", "lt": "({0} < {1})", "gt": "({0} > {1})", "le": "({0} <= {1})", "ge": "({0} >= {1})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "and": "({0} & {1})", "or": "({0} | {1})",
    "select_n": "np.where({0}, {2}, {1})", "exp": "np.exp({0})",
}  # fmt: skip
"""Primitive -> NumPy."""

NUMBA = NUMPY | {
    "max": "max({0}, {1})",
    "min": "min({0}, {1})",
    "select_n": "({2} if {0} else {1})",
    "exp": "decay({0})",
}
"""Primitive -> scalar code that LLVM vectorises."""


@numba.njit(fastmath=True, inline="always")
def decay(x: np.float32) -> np.float32:
    """Return exp(x) for x <= 0 as a polynomial of x / 64, squared six times: 4e-6 near 0, no call in the loop."""
    y = max(x, np.float32(-40.0)) * np.float32(1 / 64)
    p = y * np.float32(1 / 720) + np.float32(1 / 120)
    p = p * y + np.float32(1 / 24)
    p = p * y + np.float32(1 / 6)
    p = p * y + np.float32(0.5)
    p = p * y + np.float32(1.0)
    p = p * y + np.float32(1.0)
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    return p * p


ZERO, ONE = "f32(0.0)", "f32(1.0)"

SAME = ("convert_element_type", "copy", "broadcast_in_dim", "squeeze", "reshape", "stop_gradient")


@dataclass(frozen=True)
class Line:
    """One operation: ``name`` = ``primitive`` of ``given`` (names or literals), on the side of what it depends on."""

    name: str
    primitive: str
    given: tuple[str, ...]
    side: int

    def source(self, dialect: dict[str, str]) -> str:
        """Return the assignment in a dialect."""
        return f"{self.name} = {dialect[self.primitive].format(*self.given)}"


@dataclass(frozen=True)
class Transcript:
    """A program of one design and one kernel: its lines, those that no output needs left out, and its outputs."""

    lines: tuple[Line, ...]
    outputs: tuple[str, ...]

    def of(self, side: int) -> tuple[Line, ...]:
        """Return the lines of one side."""
        return tuple(line for line in self.lines if line.side == side)

    def used_by(self, side: int) -> list[str]:
        """Return the names that lines of a side, or the outputs, take."""
        return list(dict.fromkeys([name for line in self.of(side) for name in line.given] + list(self.outputs)))

    @property
    def pair_operations(self) -> int:
        """Operations that each pair needs, as COST counts them."""
        return sum(COST.get(name, 0) * n for name, n in Counter(line.primitive for line in self.of(PAIR)).items())


def transcribe(function: Callable, designs: list[str], kernels: list[str]) -> Transcript:
    """Return ``function`` of two lists of scalars, named ``designs`` and ``kernels``, line by line.

    A factor of 1 and a term of 0 are left out, as whoever writes the published model would.
    """
    one = jax.numpy.float32(1)
    closed = jax.make_jaxpr(function)([one] * len(designs), [one] * len(kernels))
    walk = _Walk(dict.fromkeys(designs, DESIGN) | dict.fromkeys(kernels, KERNEL))
    outputs = tuple(walk.through(closed.jaxpr, closed.consts, [*designs, *kernels]))
    needed, kept = set(outputs), []
    for line in reversed(walk.lines):
        if line.name in needed:
            kept.append(line)
            needed.update(line.given)
    return Transcript(tuple(reversed(kept)), outputs)


class _Walk:
    """The lines written so far, and on which side each name stands."""

    def __init__(self, sides: dict[str, int]) -> None:
        self.sides = sides
        self.lines: list[Line] = []

    def through(self, jaxpr: Any, consts: Sequence[Any], inputs: list[str]) -> list[str]:
        """Write the equations of a jaxpr whose inputs have these names; return the names of its outputs."""
        known = dict(zip(jaxpr.invars, inputs, strict=True))
        known |= {var: _literal(value) for var, value in zip(jaxpr.constvars, consts, strict=True)}

        def text(atom: Any) -> str:
            return _literal(atom.val) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            given = [text(atom) for atom in equation.invars]
            inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
            if inner is None:
                known[equation.outvars[0]] = self._line(equation, given)
                continue
            found = self.through(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given)
            known |= dict(zip(equation.outvars, found, strict=True))
        return [text(atom) for atom in jaxpr.outvars]

    def _line(self, equation: Any, given: list[str]) -> str:
        """Write one equation, unless it is another name for something; return the name of its result."""
        primitive = equation.primitive.name
        if primitive in SAME:
            was_boolean = equation.invars[0].aval.dtype == bool and equation.outvars[0].aval.dtype != bool
            return self._written("select_n", [given[0], ZERO, ONE]) if was_boolean else given[0]
        if primitive in ("integer_pow", "square"):
            power = equation.params.get("y", 2)
            result = given[0]
            for _ in range(power - 1):
                result = self._written("mul", [result, given[0]])
            return result
        if primitive == "not":
            return self._written("eq", [given[0], "False"])
        return self._written(primitive, given)

    def _written(self, primitive: str, given: list[str]) -> str:
        if primitive == "mul" and ZERO in given:
            return ZERO
        if primitive == "mul" and ONE in given:
            return given[1 - given.index(ONE)]
        if primitive == "add" and ZERO in given:
            return given[1 - given.index(ZERO)]
        if primitive in ("sub", "div") and given[1] == (ZERO if primitive == "sub" else ONE):
            return given[0]
        side = 0
        for name in given:
            side |= self.sides.get(name, 0)
        name = f"v{len(self.lines)}"
        self.sides[name] = side
        self.lines.append(Line(name, primitive, tuple(given), side))
        return name


def _literal(value: Any) -> str:
    value = np.asarray(value)
    return str(bool(value)) if value.dtype == bool else f"f32({float(value)!r})"
