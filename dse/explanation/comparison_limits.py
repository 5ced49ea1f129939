"""Conditions on the metrics of compared GPUs: "tbt_ms <= 40"."""

from collections.abc import Mapping, Sequence
from typing import Any

from dse.base.errors import InputError
from dse.space.expression import Expression, parse_expression


def read_limits(texts: Sequence[str], allowed: Sequence[str]) -> tuple[Expression, ...]:
    """Return conditions on the ``allowed`` metrics; raises InputError naming the text."""
    limits = []
    for text in texts:
        limit = parse_expression(text, "--limit", allowed)
        if not limit.condition:
            raise InputError(f"--limit {text!r} is not a condition; give a comparison, as 'tbt_ms <= 40'")
        limits.append(limit)
    return tuple(limits)


def broken(limits: Sequence[Expression], row: Mapping[str, Any]) -> str:
    """Return the first condition that a row of metrics does not meet, "" for none.

    Raises InputError where a condition names a metric that the workload has not.
    """
    for limit in limits:
        missing = [name for name in limit.names if name not in row]
        if missing:
            has = ", ".join(name for name, value in row.items() if isinstance(value, float))
            raise InputError(f"--limit {limit.text!r}: the workload has no {missing[0]}; it has {has}")
        if not limit(row):
            return limit.text
    return ""
