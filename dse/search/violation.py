"""How far designs are from a condition: 0 where it holds, else the size of the miss, so that a search can follow it."""

import ast
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from dse.space.expression import Expression


def violation(condition: Expression, values: Mapping[str, Any]) -> np.ndarray:
    """Return by how much ``values`` (name -> array of designs) miss a condition, relative to its right-hand side.

    Both of ``a and b`` count, of ``a or b`` the lesser; a miss that has no size (``==``, ``not``) counts 1.
    """
    return np.asarray(_missed(condition, condition.tree, values), dtype=float)


def _missed(whole: Expression, node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return np.sum(np.broadcast_arrays(*[_missed(whole, part, values) for part in parts]), axis=0)
        case ast.BoolOp(values=parts):
            return np.min(np.broadcast_arrays(*[_missed(whole, part, values) for part in parts]), axis=0)
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            size = _value(whole, left, values) - (bound := _value(whole, right, values))
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            size = (bound := _value(whole, right, values)) - _value(whole, left, values)
        case _:
            return np.where(_value(whole, node, values), 0.0, 1.0)
    size = np.nan_to_num(size / np.maximum(np.abs(bound), 1e-30), nan=1.0, posinf=1e30)
    return np.where(_value(whole, node, values), 0.0, np.maximum(size, 1e-9))


def _value(whole: Expression, node: ast.expr, values: Mapping[str, Any]) -> np.ndarray:
    return np.asarray(Expression(whole.text, node, whole.names, False)(values))


def excess(condition: Expression, values: Mapping[str, Any], array_module: Any) -> Any:
    """Return how far ``values`` are beyond a condition, relative to its right-hand side: at most 0 where it holds.

    As :func:`violation`, but signed and differentiable; the larger of ``a and b``, the lesser of ``a or b``. What has
    no size (``==``, ``not``) is -1 or 1.
    """
    return _beyond(condition, condition.tree, values, array_module)


def _beyond(whole: Expression, node: ast.expr, values: Mapping[str, Any], xp: Any) -> Any:
    def value(part: ast.expr) -> Any:
        return Expression(whole.text, part, whole.names, False)(values, xp)

    match node:
        case ast.BoolOp(op=op, values=parts):
            sizes = [_beyond(whole, part, values, xp) for part in parts]
            return reduce(xp.maximum if isinstance(op, ast.And) else xp.minimum, sizes)
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
            return (value(left) - value(right)) / xp.maximum(xp.abs(value(right)), 1e-30)
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()], comparators=[right]):
            return (value(right) - value(left)) / xp.maximum(xp.abs(value(right)), 1e-30)
    return xp.where(value(node), -1.0, 1.0)
