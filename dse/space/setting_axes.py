"""Axes over what is no attribute of a GPU: the base GPU itself, and settings of workloads such as ``decode.batch``.

Each combination of their values is a variant (:mod:`dse.space.variants`), with kernels of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dse.base.errors import InputError, accepted
from dse.hardware.schema import Attribute, gpu_schema
from dse.space.axis import RANGE_KEYS, Axis, make_axis
from dse.workload.counts import LARGEST
from dse.workload.parse import KEYS, with_setting

BASE = "base"
"""The axis of base GPUs."""

EVERY = "workloads"
"""Stands before a setting that all workloads share, as ``workloads.tp``."""

UNITS = {
    "batch": "request",
    "prompt": "token",
    "prefix": "token",
    "context": "token",
    "output": "token",
    "images": "image",
    "audio": "s",
    "tp": "GPU",
    "dp": "replica",
    "ep": "GPU",
}
"""Setting -> unit of its values; others are names."""


def parted(axes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes of attributes, and those of settings: ``decode.batch`` as a quoted key or in a table of
    ``decode``."""
    attributes: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, spec in axes.items():
        if isinstance(spec, dict) and key not in gpu_schema() and spec and spec.keys().isdisjoint(RANGE_KEYS):
            settings |= {f"{key}.{name}": values for name, values in spec.items()}
        elif key == BASE or "." in key:
            settings[key] = spec
        else:
            attributes[key] = spec
    return attributes, settings


def base_axis(names: Iterable[str], where: str) -> Axis:
    """Return the axis of base GPUs by their names; raises InputError where one is given twice."""
    names = list(names)
    return make_axis(_attribute(BASE, tuple(dict.fromkeys(names)), "", "the base GPU"), names, where)


def setting_axis(key: str, spec: Any, workloads: Iterable[str], where: str) -> Axis:
    """Return the axis of ``WORKLOAD.KEY``: of whole numbers (a list or a range), or of names; raises InputError."""
    workload, _, name = key.partition(".")
    if workload not in (known := [*workloads, EVERY]):
        raise InputError(f"{where}: {workload!r} is not a workload of this space; {accepted(workload, known)}")
    if name not in KEYS:
        raise InputError(f"{where}: {name!r} is not a setting of a workload; {accepted(name, KEYS)}")
    values = spec if isinstance(spec, list) else [spec]
    if any(isinstance(value, str) for value in values):
        if not all(isinstance(value, str) for value in values):
            raise InputError(f"{where}: {spec!r} mixes names and numbers; give one or the other")
        return make_axis(_attribute(key, tuple(dict.fromkeys(values)), "", KEYS[name]), values, where)
    return make_axis(_attribute(key, (), UNITS.get(name, "1"), KEYS[name]), spec, where)


def _attribute(name: str, choices: tuple[str, ...], unit: str, meaning: str) -> Attribute:
    """What a setting is, described as attributes of GPUs are."""
    low, high = (0.0, len(choices) - 1.0) if choices else (1.0, float(LARGEST))
    return Attribute(name, "choice" if choices else "int", unit or "1", None, low, high, choices, meaning, "")


def with_settings(table: Mapping[str, Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a space's table of workloads with the ``values`` of settings, by ``WORKLOAD.KEY``, in their texts."""
    changed = dict(table)
    for key, value in values.items():
        workload, _, name = key.partition(".")
        for one in changed if workload == EVERY else [workload]:
            spec = changed[one]
            use = spec.get("use") if isinstance(spec, dict) else spec
            if not isinstance(use, str):
                continue  # which is refused where workloads are read
            try:
                text = with_setting(use, name, str(value))
            except InputError as error:
                raise InputError(f"{where}: [axes] {key}: {error}") from None
            changed[one] = spec | {"use": text} if isinstance(spec, dict) else text
    return changed


def stated(table: Mapping[str, Any], key: str) -> str:
    """Return the value of a setting that the workload's own text states, "" where it states none."""
    workload, _, name = key.partition(".")
    spec = next(iter(table.values()), "") if workload == EVERY else table.get(workload, "")
    use = spec.get("use", "") if isinstance(spec, dict) else spec
    parts = str(use).partition(":")[2].split(",")
    return next((value.strip() for part, _, value in (p.partition("=") for p in parts) if part.strip() == name), "")
