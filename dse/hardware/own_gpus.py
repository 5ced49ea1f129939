"""GPUs of a user's own in the file of a calibration: by their numbers it knows them again, whatever they are called."""

from collections.abc import Iterable
from typing import Any

from dse.base.errors import InputError
from dse.base.toml_text import literal
from dse.hardware.presets import GpuSheet, alike, gpu_from_mapping, gpu_index, preset_names, preset_sheet

TABLE = "own_gpus"
"""Table of a calibration's file that holds them."""

CAPACITY = (
    "dram_gb",
    "dram_pin_gbps",
    "dram_pj_per_bit",
    "dram_idle_w_per_gb",
    "dram_phy_mm2_per_bit",
    "dram_usd_per_gb",
)
"""Attributes that decide what fits into a memory and what it costs; of speed what its watts cost at the limit alone."""


def own_gpus(sheets: Iterable[GpuSheet]) -> tuple[GpuSheet, ...]:
    """Return those of the GPUs that are no preset, whatever their names."""
    return tuple(s for s in sheets if s.name not in gpu_index() or not alike(s, preset_sheet(s.name)))


def own_lines(sheets: Iterable[GpuSheet]) -> list[str]:
    """Return the TOML lines of GPUs: what each differs in from its base, or every attribute where it has none."""
    lines = []
    for sheet in sheets:
        base = preset_sheet(sheet.base).numbers() if sheet.base else {}
        lines += ["", f"[{TABLE}.{literal(sheet.name)}]", f"name = {literal(sheet.title)}"]
        lines += [f"base = {literal(sheet.base)}"] if sheet.base else []
        lines += [
            f"{name} = {literal(entry.value)}"
            for name, entry in sheet.entries.items()
            if base.get(name) != entry.number
        ]
    return lines


def read_own(content: dict[str, Any], where: str) -> tuple[GpuSheet, ...]:
    """Return the GPUs of :func:`own_lines` in a file's content; raises InputError for what is none."""
    found = content.get(TABLE, {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise InputError(f"{where}: {TABLE} is {found!r}; give a table of GPUs")
    return tuple(gpu_from_mapping(one, f"{where}: {TABLE}.{name}", name) for name, one in found.items())


def sheets_of(names: Iterable[str], own: Iterable[GpuSheet]) -> dict[str, GpuSheet]:
    """Return name -> sheet of the GPUs named, presets and a user's ``own``; unknown ones are left out."""
    mine = {one.name: one for one in own}
    return {name: mine.get(name) or preset_sheet(name) for name in names if name in mine or name in gpu_index()}


def matching_name(sheet: GpuSheet, names: Iterable[str], own: Iterable[GpuSheet]) -> str:
    """Return what a GPU is called among those named, by its numbers; "" where it is none of them.

    ``own``: those among them that are no presets. One that is named in a file without its numbers is known by its name.
    A GPU of another memory capacity is the same one, where none has the very numbers: its kernels are the same.
    """
    names = list(names)
    sheets = sheets_of(names, own)
    same = (name for name in names if (alike(sheet, sheets[name]) if name in sheets else name == sheet.name))
    return next(same, "") or next((n for n in sheets if alike(sheet, sheets[n], but=CAPACITY)), "")


def preset_of(sheet: GpuSheet) -> str:
    """Return the preset that a GPU is by its numbers, whatever it is called; "" where it is none."""
    own_name_first = sorted(preset_names(), key=lambda name: name != sheet.name)
    return next((name for name in own_name_first if alike(sheet, preset_sheet(name))), "")
