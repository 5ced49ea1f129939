"""The size of a constraint's violation: 0 where it is satisfied, else how far designs are from it."""

import ast
from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from dse.space.expression import Expression


def violation(condition: Expression, values: Mapping[str, Any]) -> np.ndarray:
    """Return by how much ``values`` (name -> array of designs) miss a condition, relative to its right-hand side.

    Both of ``a and b`` count, of ``a or b`` the lesser, of ``a < b < c`` both; a miss that has no size (``==``,
    ``not``) counts 1.
    """
    return np.asarray(_miss(condition, _paired(condition.tree), values), dtype=float)


def _paired(node: ast.expr) -> ast.expr:
    """Return a condition with its chained comparisons written out: a < b < c as a < b and b < c."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            return ast.BoolOp(op, [_paired(part) for part in parts])
        case ast.Compare(left=left, ops=ops, comparators=sides) if len(ops) > 1:
            pairs = zip(pairwise([left, *sides]), ops, strict=True)
            return ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for (a, b), op in pairs])
    return node


def _miss(whole: Expression, node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return np.sum(np.broadcast_arrays(*[_miss(whole, part, values) for part in parts]), axis=0)
        case ast.BoolOp(values=parts):
            return np.min(np.broadcast_arrays(*[_miss(whole, part, values) for part in parts]), axis=0)
    holds = np.asarray(_value(whole, node, values, np))
    size = _size(whole, node, values, np)
    size = 1.0 if size is None else np.maximum(np.nan_to_num(size, nan=1.0, posinf=1e30), 1e-9)
    return np.where(holds, 0.0, size)


def _size(whole: Expression, node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    """By how much the left of a comparison is beyond its right, relative to that; None where a miss has no size.

    Relative to the terms of the left where the right is 0: ``a - b <= 0`` misses by about as much as ``a <= b``.
    """
    match node:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            sign = 1.0
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            sign = -1.0
        case _:
            return None
    bound = _value(whole, right, values, xp)
    scale = xp.where(xp.abs(bound) > 0, xp.abs(bound), _terms(whole, left, values, xp))
    return sign * (_value(whole, left, values, xp) - bound) / xp.maximum(scale, 1e-30)


def _terms(whole: Expression, node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    """Return the larger of a sum's or a difference's terms, as a size."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return xp.maximum(_terms(whole, left, values, xp), _terms(whole, right, values, xp))
    return xp.abs(_value(whole, node, values, xp))


def _value(whole: Expression, node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    return Expression(whole.text, node, whole.names, False)(values, xp)


def excess(condition: Expression, values: Mapping[str, Any], array_module: Any) -> Any:
    """Return how far ``values`` are beyond a condition, relative to its right-hand side: at most 0 where it holds.

    As :func:`violation`, but signed and differentiable; the larger of ``a and b``, the lesser of ``a or b``. What has
    no size (``==``, ``not``) is -1 or 1.
    """
    return _beyond(condition, _paired(condition.tree), values, array_module)


def _beyond(whole: Expression, node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    if isinstance(node, ast.BoolOp):
        sizes = [_beyond(whole, part, values, xp) for part in node.values]
        return reduce(xp.maximum if isinstance(node.op, ast.And) else xp.minimum, sizes)
    size = _size(whole, node, values, xp)
    return xp.where(_value(whole, node, values, xp), -1.0, 1.0) if size is None else size
