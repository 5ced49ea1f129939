"""Arithmetic expressions in TOML files: parsed to a syntax tree, checked name by name, never executed as code.

A comparison, ``and``, ``or`` and ``not`` hold or not; in arithmetic that counts 1 or 0, in NumPy and in JAX alike.
"""

import ast
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dse.base.errors import InputError, accepted, shown

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
FUNCTIONS = ("min", "max", "sqrt", "log", "log2", "exp", "ceil", "floor", "round", "abs")
"""Functions that an expression may call."""

MAX_LENGTH = 1000
MAX_DEPTH = 100
"""Terms in a row: each is one step of recursion wherever an expression is read."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression: its ``text``, the dotted ``names`` it uses, and whether it is a ``condition``."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]
    condition: bool

    def __call__(self, values: Mapping[str, Any], array_module: Any = np) -> Any:
        """Return the value for ``values`` (dotted name -> number or array); ``array_module`` is numpy or jax.numpy.

        Numbers follow IEEE 754: 1/0 is infinite, not an error. A ``condition`` is true or false, all else a number.
        """
        with np.errstate(all="ignore"):
            value = _evaluate(self.tree, values, array_module)
        return value if self.condition else _number(value)

    def divisors(self) -> list["Expression"]:
        """Return what the expression divides by, each as an expression of its own."""
        found = [
            n.right for n in ast.walk(self.tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.Mod)
        ]
        return [_part(tree) for tree in found]

    def left(self) -> "Expression | None":
        """Return what a single comparison holds against its right-hand side; None of anything else."""
        return _part(self.tree.left) if isinstance(self.tree, ast.Compare) and len(self.tree.ops) == 1 else None

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text


def parse_expression(text: str, where: str, allowed: Iterable[str] | None = None) -> Expression:
    """Return the expression that ``text`` states.

    Allowed are numbers, names, ``a.b``, ``a.b.c``, + - * / ** %, comparisons, and/or/not, and FUNCTIONS; what is true
    counts 1 in arithmetic, what is not 0: ``(a > 1) + (a > 2)`` is 0, 1 or 2. Raises InputError naming ``where``, the
    part that is not allowed, or the name that is not among ``allowed``.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InputError(
            f"{where}: {shown(text)} is not an expression; give a text such as '2 * sm_count' (condition: "
            "'die_mm2 <= 814')"
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # of Python's about what is refused here anyhow
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{where}: {shown(text)} is not an expression; give arithmetic on names and numbers") from None
    if _depth(tree) > MAX_DEPTH:
        raise InputError(f"{where}: {shown(text)} has more than {MAX_DEPTH} terms or signs in a row; give fewer")
    names: list[str] = []
    _check(tree, text, where, names)
    if allowed is not None:
        pool = set(allowed)
        for name in names:
            if name not in pool:
                raise InputError(f"{where}: {name!r} in {text!r} is not known here; {accepted(name, pool)}")
    return Expression(text.strip(), tree, tuple(dict.fromkeys(names)), _is_condition(tree))


def _part(tree: ast.expr) -> Expression:
    """Return a part of a checked expression."""
    text, names = ast.unparse(tree), []
    _check(tree, text, "", names)
    return Expression(text, tree, tuple(dict.fromkeys(names)), _is_condition(tree))


def _is_condition(tree: ast.expr) -> bool:
    return isinstance(tree, (ast.Compare, ast.BoolOp)) or (
        isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    )


def _dotted(node: ast.expr) -> str:
    """Return the name that ``a.b`` or ``a.b.c`` is, "" of anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr) if head := _dotted(value):
            return f"{head}.{attr}"
    return ""


def _depth(tree: ast.expr) -> int:
    """How many nodes stand below each other."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _refused(node: ast.expr, text: str, where: str) -> InputError:
    return InputError(
        f"{where}: {shown(ast.unparse(node))} in {shown(text)} is not allowed; give numbers, names, + - * / ** %, "
        f"comparisons, and, or, not, and {', '.join(FUNCTIONS)}"
    )


def _check(node: ast.expr, text: str, where: str, names: list[str]) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            if isinstance(node.value, float | int) and abs(node.value) > 1e30:
                raise _refused(node, text, where)
        case ast.Name(id=name):
            names.append(name)
        case ast.Attribute() if name := _dotted(node):
            names.append(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left, text, where, names)
            _check(right, text, where, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            _check(operand, text, where, names)
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARE for op in ops):
            for part in (left, *rest):
                _check(part, text, where, names)
        case ast.BoolOp(values=parts):
            for part in parts:
                _check(part, text, where, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            if name not in ("min", "max") and len(args) != 1:
                raise _refused(node, text, where)
            for part in args:
                _check(part, text, where, names)
        case _:
            raise _refused(node, text, where)


def _evaluate(node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    def go(part: ast.expr) -> Any:
        return _evaluate(part, values, xp)

    match node:
        case ast.Constant(value=value):
            return np.float64(float(value))  # pyright: ignore[reportArgumentType]  # a Python integer could grow without bound in a power
        case ast.Name(id=name):
            return values[name]
        case ast.Attribute():
            return values[_dotted(node)]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_number(go(left)), _number(go(right)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return xp.logical_not(go(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(go(operand))
        case ast.UnaryOp(operand=operand):
            return _number(go(operand))
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [go(left), *map(go, rest)]
            checks = [_COMPARE[type(op)](a, b) for op, a, b in zip(ops, parts, parts[1:], strict=False)]
            return reduce(xp.logical_and, checks)
        case ast.BoolOp(op=op, values=parts):
            combine = xp.logical_and if isinstance(op, ast.And) else xp.logical_or
            return reduce(combine, [go(part) for part in parts])
        case ast.Call(func=ast.Name(id=name), args=args):
            return _call(name, [_number(go(part)) for part in args], xp)
    raise AssertionError(f"unchecked node {ast.dump(node)}")


def _number(value: Any) -> Any:
    """Return what is true as 1 and what is not as 0: arrays of truth values would add up to "or" instead."""
    return value * 1.0 if getattr(value, "dtype", None) == np.dtype(bool) else value


def _call(name: str, args: list[Any], xp: Any) -> Any:
    if name in ("min", "max"):
        return reduce(xp.minimum if name == "min" else xp.maximum, args)
    return getattr(xp, name)(args[0])
