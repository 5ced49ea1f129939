"""What can be told of a space's expressions without evaluating a design: those that no design can give a value."""

from collections.abc import Mapping, Sequence

import numpy as np

from dse.base.errors import InputError
from dse.hardware.schema import gpu_schema
from dse.space.axis import Axis
from dse.space.expression import Expression
from dse.space.links import OF_BASE, Columns, Links, around, combinations, count_of, deciding

MOST = 200_000
"""Combinations of the axes that decide an expression, up to which it is evaluated here; of more nothing is told."""


def refuse_links(base: Mapping[str, float], axes: Sequence[Axis], links: Links, where: str) -> None:
    """Refuse a link that lies outside its attribute's range, or is no finite number, in every design of the grid."""
    for position, (name, expression) in enumerate(links):
        here = f"{where}: [links] {name}"
        columns = _attributes(base, axes, links[: position + 1], (*expression.names, name))
        if columns is None:
            continue
        _refuse_divisors(expression, columns, here)
        _refuse_non_finite(expression, columns, here)
        attribute, value = gpu_schema()[name], np.asarray(columns[name])
        if not ((attribute.low <= value) & (value <= attribute.high)).any():
            raw = np.asarray(expression(columns), float)
            finite = raw[np.isfinite(raw)]
            least, most = f"{finite.min():g}", f"{finite.max():g}"
            told = least if least == most else f"{least} to {most}"
            where_not = "" if len(finite) == raw.size else " that does not divide by zero"
            raise InputError(
                f"{here} = {expression.text!r} is {told} in every design{where_not}; give {attribute.range_text}"
            )


def refuse_expression(
    expression: Expression, base: Mapping[str, float], axes: Sequence[Axis], links: Links, where: str
) -> None:
    """Refuse an objective or a constraint that designs cannot differ in, or that divides by zero in all of them."""
    if all(name.startswith(OF_BASE) for name in expression.names):
        raise InputError(
            f"{where}: {expression.text!r} is the same in every design; name an attribute or a result, as die_mm2"
        )
    for part in (*expression.divisors(), expression):
        columns = _attributes(base, axes, links, part.names)
        if columns is None:
            continue
        if part is expression:
            _refuse_non_finite(part, columns, where)
        else:
            _refuse_zero(part, expression, columns, where)


def _attributes(base: Mapping[str, float], axes: Sequence[Axis], links: Links, names: Sequence[str]) -> Columns | None:
    """Return the attributes of all designs that differ in ``names``; None where results are among them, or too many."""
    plain = [name.removeprefix(OF_BASE) for name in names]
    if not set(plain) <= gpu_schema().keys():
        return None
    free = [name for name in names if not name.startswith(OF_BASE)]
    varied = deciding(axes, links, free)
    if count_of(varied) > MOST:
        return None
    numbers = {name: np.asarray(number) for name, number in base.items()}
    return around(numbers) | combinations(base, links, varied)


def _refuse_divisors(expression: Expression, columns: Columns, where: str) -> None:
    for part in expression.divisors():
        _refuse_zero(part, expression, columns, where)


def _refuse_zero(divisor: Expression, expression: Expression, columns: Columns, where: str) -> None:
    if not np.any(divisor(columns)):
        raise InputError(
            f"{where}: {expression.text!r} divides by {divisor.text!r}, which is 0 in every design; divide by another"
        )


def _refuse_non_finite(expression: Expression, columns: Columns, where: str) -> None:
    if not np.isfinite(np.asarray(expression(columns), float)).any():
        raise InputError(f"{where}: {expression.text!r} is no finite number in any design; give one that is")
