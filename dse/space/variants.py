"""Variants of a space: every combination of a base GPU with values of its workloads' settings, each a plain space.

All variants have the same axes, links, constraints and objectives; base GPU and kernels differ. In the grid they vary
slowest, so that designs of one variant follow each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np

from dse.base.errors import InputError
from dse.hardware.presets import GpuSheet
from dse.space import links
from dse.space.axis import Axis
from dse.space.setting_axes import BASE, base_axis, setting_axis, stated, with_settings

S = TypeVar("S")
"""A plain space, which :mod:`dse.space.space` makes."""

MOST_VARIANTS = 1000
"""Most variants of a space: the kernels of each are made when it is read."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Variant(Generic[S]):
    """A base GPU with one value of each setting; ``space`` is None where it cannot be, for the ``reason``."""

    base: GpuSheet
    space: S | None
    reason: str = ""


@dataclass(frozen=True)
class Variants(Generic[S]):
    """The variants of a space in the order of its grid, the last of their ``axes`` varying fastest.

    ``home``: the one that the baseline is of.
    """

    axes: tuple[Axis, ...]
    every: tuple[Variant[S], ...]
    home: int

    @cached_property
    def spaces(self) -> list[S]:
        """The spaces of those variants that can be."""
        return [variant.space for variant in self.every if variant.space is not None]

    @property
    def home_space(self) -> S:
        """The space of the baseline."""
        space = self.every[self.home].space
        assert space is not None
        return space

    def numbers(self, variant: int) -> dict[str, float]:
        """Return the numbers of a variant on the axes."""
        found: dict[str, float] = {}
        for axis in reversed(self.axes):
            variant, digit = divmod(variant, len(axis))
            found[axis.name] = axis.numbers[digit]
        return {axis.name: found[axis.name] for axis in self.axes}

    def of(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return which variant designs are of, (designs,), by their columns."""
        place = np.zeros(len(next(iter(columns.values()))), np.int64)
        for axis in self.axes:
            numbers = np.asarray(axis.numbers, float)
            order = np.argsort(numbers)
            digit = order[np.searchsorted(numbers[order], np.asarray(columns[axis.name], float))]
            place = place * len(axis) + digit
        return place

    def parts(self, columns: Mapping[str, np.ndarray]) -> list[tuple[int, np.ndarray]]:
        """Return the variants that designs are of, each with the places of its designs."""
        which = self.of(columns)
        return [(int(variant), np.flatnonzero(which == variant)) for variant in np.unique(which)]

    def of_bases(self, columns: Mapping[str, np.ndarray]) -> Columns:
        """Return the attributes of the base GPU of each design, (designs,)."""
        tables = [variant.base.numbers() for variant in self.every]
        which = self.of(columns)
        return {name: np.array([table[name] for table in tables])[which] for name in tables[0]}

    def with_links(self, rules: links.Links, axes: Columns) -> Columns:
        """Return the columns of ``axes`` and of every link, each design around the base GPU of its own variant."""
        outer = {axis.name for axis in self.axes}
        columns = dict(axes) | {name: np.empty(len(next(iter(axes.values())))) for name, _ in rules}
        for variant, places in self.parts(axes) if rules else ():
            mine = {name: values[places] for name, values in axes.items() if name not in outer}
            of_base = mine or {"": np.zeros(len(places))}
            linked = links.with_links(self.every[variant].base.numbers(), rules, of_base)
            for name, _ in rules:
                columns[name][places] = linked[name]
        return columns


def variants_of(
    content: dict[str, Any],
    settings: Mapping[str, Any],
    sheet: Callable[[str], GpuSheet],
    plain: Callable[[dict[str, Any]], S],
    where: str,
) -> Variants[S]:
    """Return the variants of a space's ``content``, whose axes of ``settings`` stand beside it.

    ``sheet``: the base GPU of a name or path; ``plain``: the space of a mapping without such axes. A variant that
    cannot be has its reason; raises InputError where none can be, or where a value of a setting is in none that can.
    """
    names = _bases(content, settings, where)
    sheets = [sheet(name) for name in names]
    axes = [base_axis([one.name for one in sheets], f"{where}: base")] if isinstance(names, list) else []
    workloads = content.get("workloads")
    workloads = workloads if isinstance(workloads, dict) else {}
    given = {key: spec for key, spec in settings.items() if key != BASE}
    axes += [setting_axis(key, spec, workloads, f"{where}: [axes] {key}") for key, spec in given.items()]
    _refuse_many(axes, where)
    every: list[Variant[S]] = []
    for values in product(*(axis.values for axis in axes)):
        chosen = dict(zip((axis.name for axis in axes), values, strict=True))
        place = axes[0].values.index(chosen.pop(BASE)) if axes and axes[0].name == BASE else 0
        try:
            texts = with_settings(workloads, chosen, where)
            every.append(Variant(sheets[place], plain(content | {"base": names[place], "workloads": texts})))
        except InputError as error:
            every.append(Variant(sheets[place], None, str(error).removeprefix(f"{where}: ")))
    found = Variants(tuple(axes), tuple(every), 0)
    _refuse_impossible(found, where)
    return Variants(found.axes, found.every, _home(found, workloads))


def _bases(content: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> Any:
    """Return the names of the base GPUs, a list, or one in a tuple where there is no axis of them."""
    if BASE in settings and "base" in content:
        raise InputError(f"{where}: base is given at the top of the file and in [axes]; give one of the two")
    names = settings.get(BASE, content.get("base"))
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return names
    if isinstance(names, str) and BASE not in settings:
        return (names,)
    raise InputError(
        f'{where}: base = {names!r} is not accepted; give the name or the TOML of a GPU, as base = "h100_sxm", or a '
        "list of them"
    )


def _refuse_many(axes: list[Axis], where: str) -> None:
    count = int(np.prod([len(axis) for axis in axes], dtype=object))
    if count > MOST_VARIANTS:
        names = ", ".join(axis.name for axis in axes)
        raise InputError(f"{where}: {names} have {count:,} combinations; give at most {MOST_VARIANTS:,}")


def _refuse_impossible(variants: Variants[Any], where: str) -> None:
    """Refuse a space none of whose variants can be, and a value of a setting that none of them has."""
    if not variants.spaces:
        raise InputError(f"{where}: {variants.every[0].reason}")
    for axis in (axis for axis in variants.axes if axis.name != BASE):
        for number, value in zip(axis.numbers, axis.values, strict=True):
            mine = [v for k, v in enumerate(variants.every) if variants.numbers(k)[axis.name] == number]
            if all(variant.space is None for variant in mine):
                raise InputError(f"{where}: [axes] {axis.name} = {value}: {mine[0].reason}")


def _home(variants: Variants[Any], workloads: Mapping[str, Any]) -> int:
    """Return the variant of the baseline: the first base GPU, settings as their workload states them, else the first
    value; of such that can be."""
    wanted = {axis.name: stated(workloads, axis.name) for axis in variants.axes if axis.name != BASE}

    def unlike(place: int) -> int:
        numbers = variants.numbers(place)
        return sum(
            str(axis.attribute.decode(numbers[axis.name])) != wanted.get(axis.name)
            for axis in variants.axes
            if axis.name != BASE and wanted[axis.name] in map(str, axis.values)
        )

    can_be = [place for place, variant in enumerate(variants.every) if variant.space is not None]
    return min(can_be, key=unlike)
