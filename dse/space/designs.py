"""Designs of a space as columns of numbers: axes with their links, and designs around the baseline."""

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np
import pandas as pd

from dse.space import links
from dse.space.axis import Axis
from dse.space.space import Space

Columns = dict[str, np.ndarray]


def with_links(space: Space, axes: Columns) -> Columns:
    """Return the columns of ``axes`` and of every link, whole numbers rounded."""
    if space.variants:
        return space.variants.with_links(space.links, axes)
    return links.with_links(space.base.numbers(), space.links, axes)


def of_table(space: Space, table: pd.DataFrame | Mapping[str, Sequence[Any]]) -> Columns:
    """Return the axes' and links' numbers of designs given by the cells of their axes, each of shape (designs,)."""
    axes = {axis.name: np.array([encoded(axis, cell) for cell in table[axis.name]]) for axis in space.axes}
    return with_links(space, axes) if all(map(len, axes.values())) else axes


def variant_of(space: Space, row: Mapping[str, Any]) -> Space:
    """Return the plain space of the variant that a design is of, by the cells of its axes; a plain space itself.

    Only of a design that can be evaluated.
    """
    if space.variants is None:
        return space
    cells = {axis.name: np.array([encoded(axis, row[axis.name])]) for axis in space.variants.axes}
    found = space.variants.every[int(space.variants.of(cells)[0])].space
    assert found is not None
    return found


def encoded(axis: Axis, cell: Any) -> float:
    """Return the number of an axis's value as a table holds it."""
    return axis.attribute.encode(cell.item() if hasattr(cell, "item") else cell, axis.name)


def baseline(space: Space) -> Columns:
    """Return the base GPU itself as one design: its own numbers for every axis and link."""
    return {name: np.asarray([value]) for name, value in _base_columns(space).items()}


def _base_columns(space: Space, variant: int | None = None) -> dict[str, float]:
    """The numbers of a base GPU on every axis and link: of the baseline, or of a ``variant``'s base."""
    names = [axis.name for axis in space.axes] + [name for name, _ in space.links]
    if space.variants is None:
        base = space.base.numbers()
    else:
        place = space.variants.home if variant is None else variant
        base = space.variants.every[place].base.numbers() | space.variants.numbers(place)
    return {name: base[name] for name in names}


def one_axis_at_a_time(space: Space) -> tuple[list[tuple[str, float]], Columns]:
    """Return designs that differ from the base GPU in one axis and in what is linked to it: which, and their columns.

    A link that the axis does not decide keeps the base's number, whatever the link would make of the base.
    """
    base = _base_columns(space)
    names, attributes = list(base), space.base.numbers()
    parts = []
    for axis in space.axes:
        if axis.name not in attributes:
            parts.append(_other_variants(space, axis))
            continue
        mine = [link for link in space.links if links.deciding([axis], space.links, [link[0]])]
        around = {other.name: np.full(len(axis), base[other.name]) for other in space.axes}
        moved = links.with_links(attributes, mine, around | {axis.name: np.asarray(axis.numbers, float)})
        parts.append({name: moved.get(name, np.full(len(axis), base[name])) for name in names})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names} if parts else {}
    return [(axis.name, number) for axis in space.axes for number in axis.numbers], columns


def _other_variants(space: Space, axis: Axis) -> Columns:
    """The base GPUs of the variants that differ from the baseline's in one axis."""
    assert space.variants
    home = {name: np.full(len(axis), value) for name, value in _base_columns(space).items()}
    which = space.variants.of(home | {axis.name: np.asarray(axis.numbers, float)})
    every = [_base_columns(space, int(variant)) for variant in which]
    return {name: np.array([one[name] for one in every]) for name in home}


SAMPLE = 20_000
"""Designs kept for the pictures of a page."""


def sample_positions(size: int, feasible: np.ndarray, start: int = 0) -> np.ndarray:
    """Return the positions of the feasible designs that pictures show: every so-many-th of a grid of ``size``.

    ``feasible``: which designs can be had, from number ``start`` on.
    """
    positions = np.flatnonzero(feasible)
    return positions[(start + positions) % sample_step(size) == 0]


def sample_step(size: int) -> int:
    """Return the distance in a grid of ``size`` between two designs that pictures show.

    It shares no factor with the size, so that the sample runs through every value of every axis.
    """
    step = max(1, size // SAMPLE)
    while gcd(step, size) > 1:
        step += 1
    return step
