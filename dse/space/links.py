"""Linked attributes, which follow the axes, and the distinct GPUs that a grid holds in some of its attributes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from dse.base.errors import InputError
from dse.hardware.schema import gpu_schema
from dse.space.axis import Axis
from dse.space.expression import Expression

T = TypeVar("T")

Links = Sequence[tuple[str, Expression]]
Columns = dict[str, np.ndarray]

OF_BASE = "base."
"""What stands before the name of an attribute or a result of the base GPU."""

MOST_COMBINATIONS = 1_000_000
"""Combinations of axes that are listed to see which GPUs they make."""


def around(base: Mapping[str, T]) -> dict[str, T]:
    """Return what expressions may name of a base: each attribute plain, and as the base has it whatever varies."""
    return {f"{OF_BASE}{name}": value for name, value in base.items()} | dict(base)


def with_links(base: Mapping[str, float], links: Links, axes: Columns) -> Columns:
    """Return the columns of ``axes`` and of every link around a ``base``, whole numbers rounded."""
    values: dict[str, np.ndarray | float] = {**around(base), **axes}
    columns = dict(axes)
    count = len(next(iter(axes.values()))) if axes else 1
    for name, expression in links:
        value = np.broadcast_to(np.asarray(expression(values), dtype=float), (count,))
        value = np.nan_to_num(value, nan=-1.0, posinf=-1.0, neginf=-1.0)  # out of every attribute's range
        kind = gpu_schema()[name].type
        if kind == "int":
            value = np.round(value)
        elif kind != "float":  # a choice or a switch lies in no range when it is not whole
            value = np.where(value == np.round(value), value, -1.0)
        values[name] = columns[name] = value
    return columns


def deciding(axes: Iterable[Axis], links: Links, attributes: Iterable[str]) -> list[Axis]:
    """Return the axes that decide ``attributes``, through links too."""
    needed = set(attributes)
    for name, expression in reversed(links):
        if name in needed:
            needed |= {part for part in expression.names if not part.startswith(OF_BASE)}
    return [axis for axis in axes if axis.name in needed]


def count_of(axes: Sequence[Axis]) -> int:
    """Return how many combinations the values of ``axes`` have."""
    return int(np.prod([len(axis) for axis in axes], dtype=object)) if axes else 1


def combinations(base: Mapping[str, float], links: Links, axes: Sequence[Axis]) -> Columns:
    """Return the columns of every combination of ``axes`` and of every link around a ``base``."""
    grids = np.meshgrid(*(np.asarray(axis.numbers, float) for axis in axes), indexing="ij")
    return with_links(base, links, {a.name: g.reshape(-1) for a, g in zip(axes, grids, strict=True)})


def linked_values(base: Mapping[str, float], links: Links, axes: Sequence[Axis], name: str) -> np.ndarray:
    """Return the values that the link of ``name`` takes; of more than MOST_COMBINATIONS those at the axes' ends."""
    varied = deciding(axes, links, [name])
    if count_of(varied) <= MOST_COMBINATIONS:
        return combinations(base, links, varied)[name]
    ends = np.meshgrid(*([min(axis.numbers), max(axis.numbers)] for axis in varied), indexing="ij")
    return with_links(base, links, {a.name: g.reshape(-1) for a, g in zip(varied, ends, strict=True)})[name]


def variants(
    base: Mapping[str, float], axes: Iterable[Axis], links: Links, attributes: Sequence[str], most: int, where: str
) -> list[dict[str, float]]:
    """Return the base and every GPU of the grid that differs from the others in one of ``attributes``.

    Raises InputError where they are more than ``most``.
    """
    varied = deciding(axes, links, attributes)
    count = count_of(varied)
    names = ", ".join(axis.name for axis in varied)
    refusal = f"{where}: {{:,}} GPUs differ in {names}; at most {most} may, since each needs its own cache simulation"
    if count > MOST_COMBINATIONS:
        raise InputError(refusal.format(count))
    columns = combinations(base, links, varied)
    table = np.stack([np.broadcast_to(columns.get(name, base[name]), (count,)) for name in attributes], axis=1)
    rows = np.unique(np.concatenate([[[base[name] for name in attributes]], table]), axis=0)
    if len(rows) > most:
        raise InputError(refusal.format(len(rows)))
    return [dict(base) | dict(zip(attributes, row.tolist(), strict=True)) for row in rows]
