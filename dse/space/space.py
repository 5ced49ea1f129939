"""A space: a base GPU, axes, links, constraints, workloads and objectives, read from a TOML file."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import dse
from dse.base.brief import block
from dse.base.errors import InputError, accepted, expect
from dse.base.toml_file import read_toml
from dse.hardware.cost import YIELD_MODELS, DieCost
from dse.hardware.presets import GpuSheet, changed, load_sheet, preset_sheet, resolve
from dse.hardware.schema import attribute, gpu_schema
from dse.power.models import PowerChoice, power_choice
from dse.space.axis import Axis, make_axis
from dse.space.data_types import refuse_of_base, refuse_types
from dse.space.expression import Expression, parse_expression
from dse.space.fingerprint import fingerprint, implementations_in
from dse.space.impossible import refuse_links
from dse.space.links import OF_BASE
from dse.space.metrics import USD
from dse.space.objectives import (
    KEYS,
    Objective,
    allowed_names,
    read_constraints,
    read_objectives,
    stack_columns,
    stated_name,
    text_of,
)
from dse.space.setting_axes import parted
from dse.space.shipped import find_space
from dse.space.target import space_target
from dse.space.variants import Variants, variants_of
from dse.space.workloads import Around, Loaded, read_workloads
from dse.timing.models import name_of, timing_model
from dse.timing.timing import TimingModel
from dse.workload.serving_engine import Fitted
from dse.workload.workload import Workload

MAX_DESIGNS = 10**15


@dataclass(frozen=True)
class Space:
    """What is asked: every design of the grid of ``axes`` around ``base``, on every workload.

    ``variants``: where base GPUs or settings of workloads are axes too, which then come first; ``base`` and
    ``workloads`` are those of the baseline's variant. None of a plain space.
    """

    name: str
    question: str
    base: GpuSheet
    axes: tuple[Axis, ...]
    links: tuple[tuple[str, Expression], ...]
    constraints: tuple[Expression, ...]
    workloads: tuple[Workload, ...]
    weights: tuple[float, ...]
    objectives: tuple[Objective, ...]
    model: TimingModel
    power: PowerChoice
    yield_model: str
    content: dict[str, Any] = field(repr=False)
    folder: Path = Path()
    variants: "Variants[Space] | None" = None

    def __repr__(self) -> str:
        asked = ", ".join(f"{'min' if o.sign > 0 else 'max'} {o.name} [{o.unit}]" for o in self.objectives)
        return block(
            self,
            f"{self.name!r}: {self.size:,} designs around {self.base.title}",
            f"axes: {', '.join(f'{axis.name} ({len(axis)} values)' for axis in self.axes)}",
            f"workloads: {', '.join(f'{w.name} ({w.description})' for w in self.workloads)}",
            f"objectives: {asked}; {len(self.constraints)} constraints",
            f"timing model {type(self.model).__name__}, calibration {self.model.calibration}",
        )

    @cached_property
    def size(self) -> int:
        """Designs in the grid."""
        return int(np.prod([len(axis) for axis in self.axes], dtype=object)) if self.axes else 1

    @cached_property
    def digest(self) -> str:
        """Hash of everything that decides the result: space, base GPU, kernels, model, and this version."""
        state = {
            "space": self.content,
            "base": self.base.numbers(),
            "models": self.fingerprints,
            "cost": fingerprint(DieCost.from_table(self.yield_model)),
            "workloads": fingerprint([_asked(w) for w in self._every_workload]),
            "version": dse.__version__,
        }
        if self.variants:
            state["variants"] = [[one.base.numbers(), one.reason] for one in self.variants.every]
        if self.usd_per_hour is not None:
            state["usd_per_hour"] = [one.usd_per_hour for one in self.plain]
        digest = hashlib.sha256(json.dumps(state, sort_keys=True, default=repr).encode())
        for workload in self._every_workload:
            for array in workload.arrays():
                digest.update(array.tobytes())
        return digest.hexdigest()[:16]

    @property
    def plain(self) -> "list[Space]":
        """The plain spaces that it is of: those of its variants, or itself."""
        return self.variants.spaces if self.variants else [self]

    @cached_property
    def _every_workload(self) -> list[Workload]:
        """The workloads of all variants, each once."""
        return list({id(workload): workload for one in self.plain for workload in one.workloads}.values())

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        """Hashes of the timing model, as far as the workloads' kernels use it, and of the power model."""
        return {
            "timing": [name_of(self.model), fingerprint(self.model, implementations_in(self._every_workload))],
            "power": [fingerprint(self.power.model), self.power.limit],
        }

    def at(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """Return the axes' numbers of the designs with these numbers, each of shape (designs,).

        The last axis varies fastest.
        """
        columns: dict[str, np.ndarray] = {}
        for axis in reversed(self.axes):
            index, digit = np.divmod(index, len(axis))
            columns[axis.name] = np.asarray(axis.numbers)[digit]
        return {axis.name: columns[axis.name] for axis in self.axes}

    def of_base(self) -> list[str]:
        """Return the results of the base GPU that objectives and constraints name, without ``base.``."""
        expressions = (*(o.expression for o in self.objectives), *self.constraints)
        named = dict.fromkeys(name for e in expressions for name in e.names if name.startswith(OF_BASE))
        return [name.removeprefix(OF_BASE) for name in named if name.removeprefix(OF_BASE) not in gpu_schema()]

    @cached_property
    def usd_per_hour(self) -> float | None:
        """The price of the base GPU's hour [USD]; None where no objective or constraint names dollars of tokens."""
        expressions = (*(o.expression for o in self.objectives), *self.constraints)
        named = any(name.endswith(f".{USD}") for e in expressions for name in e.names)
        return self.base.hourly_price.usd if named else None

    def refuse_refinement(self, refine: bool) -> None:
        """Refuse to ``refine`` a space with variants, whose kernels differ; raises InputError."""
        if refine and self.variants:
            names = " and ".join(axis.name for axis in self.variants.axes)
            raise InputError(
                f"--refine: descends within one base GPU and one shape, and {self.name} has axes over {names}; leave "
                "it out, or give a space of one of them"
            )

    def total_ms(self, results: Mapping[str, Any]) -> Any:
        """Return ``total.time_ms`` of designs [ms]: the times of all workloads, each by its weight."""
        weighted = zip(self.workloads, self.weights, strict=True)
        return sum((results[f"{workload.name}.time_ms"] * weight for workload, weight in weighted), 0.0)


def _asked(workload: Workload) -> list[Any]:
    """What decides a workload's results beside its kernels; none follows from where an engine's numbers come from."""
    engine = None if workload.engine is None else replace(workload.engine, source="", fitted=Fitted())
    repeats = [(o.phase, o.repeats) for o in workload.operators]
    return [workload.phases, workload.memory, workload.gpus, workload.tokens, repeats, engine]


def load_space(path: str | Path) -> Space:
    """Return the space of a TOML file, or the shipped one of a name; InputError names file, key, value and remedy."""
    expect("space", path, (str, os.PathLike), "give the path of a space TOML, or the name of a shipped space")
    path = find_space(str(path))
    return space_from_mapping(read_toml(path), str(path), path.stem, path.parent)


def space_of(space: Space | str | Path) -> Space:
    """Return a space as it is, or that of :func:`load_space`; raises InputError."""
    expect("space", space, (Space, str, os.PathLike), "give a path, the name of a shipped space, or a loaded space")
    return space if isinstance(space, Space) else load_space(space)


def space_from_mapping(content: dict[str, Any], where: str, name: str, folder: Path = Path()) -> Space:
    """Return the space of a mapping with the keys of a space file; relative paths start at ``folder``."""
    if isinstance(content.get("format"), str):
        takes = "what names it (--calibration, --power, engine=, timing or power of a space)"
        raise InputError(f"{where}: is a {content['format'].rpartition(' ')[0]}, not a space; give it to {takes}")
    for key in content:
        if key not in KEYS:
            raise InputError(f"{where}: {key!r} is not a key of a space; {accepted(key, KEYS)}")
    axes, settings = parted(_table(content, "axes", where))
    if not settings and not isinstance(content.get("base"), list):
        return _plain(content, where, name, folder)
    plain = {key: value for key, value in content.items() if key != "axes"} | {"axes": axes}

    def sheet(base: str) -> GpuSheet:
        return _base(content | {"base": base}, where, folder)

    shared = _Shared(*_models(content, where, folder))
    variants = variants_of(plain, settings, sheet, lambda one: _plain(one, where, name, folder, shared), where)
    home = variants.home_space
    return _sized(replace(home, axes=(*variants.axes, *home.axes), content=content, variants=variants), where)


@dataclass(frozen=True)
class _Shared:
    """What the variants of a space share: models, and the workloads that were read."""

    model: TimingModel
    power: PowerChoice
    loaded: Loaded = field(default_factory=dict)


def _models(content: dict[str, Any], where: str, folder: Path) -> tuple[TimingModel, PowerChoice]:
    """Return the timing model and the power model of a space."""
    model = timing_model(content.get("timing", "amali"), f"{where}: timing", folder)
    return model, power_choice(content.get("power", "board"), f"{where}: power", folder)


def _plain(content: dict[str, Any], where: str, name: str, folder: Path, shared: _Shared | None = None) -> Space:
    """Return a space of one base GPU and no settings; ``shared`` with other variants; None: it is none, and needs an
    axis."""
    base = _base(content, where, folder)
    axes = _axes(_table(content, "axes", where, required=shared is None), where)
    links = _links(_table(content, "links", where, required=False), where, axes)
    refuse_links(base.numbers(), axes, links, where)
    target = space_target(base.numbers(), axes, links)
    model, power = (shared.model, shared.power) if shared else _models(content, where, folder)
    around = Around(base, axes, links, target, folder, model)
    workloads, weights = read_workloads(_table(content, "workloads", where), where, around, shared and shared.loaded)
    refuse_types(base, {axis.name for axis in axes} | {key for key, _ in links}, workloads, where)
    allowed = allowed_names(workloads)
    space = Space(
        name=stated_name(content, where, name),
        question=text_of(content, "question", where, ""),
        base=base,
        axes=axes,
        links=links,
        constraints=read_constraints(content.get("constraints", []), where, around, allowed),
        workloads=workloads,
        weights=weights,
        objectives=read_objectives(content.get("objectives"), where, around, allowed, stack_columns(workloads)),
        model=model,
        power=power,
        yield_model=_yield_model(content, where),
        content=content,
        folder=folder,
    )
    refuse_of_base(base, space.of_base(), workloads, where)
    return _sized(space, where)


def _sized(space: Space, where: str) -> Space:
    """Return a space; raises InputError where it has too many designs."""
    if space.size > MAX_DESIGNS:
        raise InputError(f"{where}: the grid has {space.size:.3g} designs; give at most {MAX_DESIGNS:.0e}")
    return space


def _yield_model(content: dict, where: str) -> str:
    name = text_of(content, "yield_model", where, "negative_binomial")
    if name not in YIELD_MODELS:
        raise InputError(f"{where}: yield_model = {name!r} is not accepted; {accepted(name, YIELD_MODELS)}")
    return name


def _table(content: dict, key: str, where: str, required: bool = True) -> dict[str, Any]:
    value = content.get(key)
    if value is None and not required:
        return {}
    if not isinstance(value, dict) or (required and not value):
        raise InputError(f"{where}: [{key}] is missing or empty; give a table [{key}] with at least one entry")
    return value


def _base(content: dict, where: str, folder: Path) -> GpuSheet:
    base = content.get("base")
    if base is not None and not isinstance(base, str):
        raise InputError(
            f'{where}: base = {base!r} is not accepted; give the name or the TOML of a GPU, as base = "h100_sxm"'
        )
    if base is None:
        raise InputError(f'{where}: base is missing; give the GPU to start from, as base = "h100_sxm"')
    overrides = _table(content, "gpu", where, required=False)
    for key in ("base", "name"):
        if key in overrides:
            raise InputError(f"{where}: [gpu] {key} is not an attribute of a GPU; give it at the top of the file")
    is_file = base.endswith(".toml")
    sheet = load_sheet(folder / base) if is_file else preset_sheet(resolve(base, f"{where}: base"))
    return changed(sheet, overrides, f"{where}: [gpu]") if overrides else sheet


def _axes(table: dict, where: str) -> tuple[Axis, ...]:
    return tuple(
        make_axis(attribute(key, f"{where}: [axes]"), spec, f"{where}: [axes] {key}") for key, spec in table.items()
    )


def _links(table: dict, where: str, axes: tuple[Axis, ...]) -> tuple[tuple[str, Expression], ...]:
    allowed = set(gpu_schema()) | {f"{OF_BASE}{key}" for key in gpu_schema()}
    swept = {axis.name for axis in axes}
    links: list[tuple[str, Expression]] = []
    for key, text in table.items():
        here = f"{where}: [links] {key}"
        attribute(key, f"{where}: [links]")
        if key in swept:
            raise InputError(f"{here}: the attribute is an axis already; sweep it or link it")
        expression = parse_expression(text, here, allowed)
        if expression.condition:
            raise InputError(f"{here}: {text!r} is a condition; give a number")
        later = set(table) - {done for done, _ in links}
        for name in expression.names:
            if name in later:
                raise InputError(f"{here}: uses {name}, which is linked itself; put that link first, or base.{name}")
        links.append((key, expression))
    return tuple(links)
