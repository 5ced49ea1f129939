"""Hardware descriptions of LLMCompass (PrincetonUniversity/LLMCompass, configs/*.json) as GPU TOMLs."""

import json
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, shown
from dse.base.text_file import parsing, printable, read_text
from dse.base.toml_text import literal
from dse.base.units import BITS_PER_BYTE, GIGA, MEGA
from dse.hardware.data_types import FP64_ARRAY, TENSOR_RATE, data_types
from dse.hardware.presets import GpuSheet, gpu_from_mapping, load_sheet
from dse.hardware.schema import gpu_schema

BASE = "a100_sxm_80gb"
"""GPU that gives what a description does not say: LLMCompass's own starts from an A100."""

Values = Callable[[str], float]
"""What gives a number of the description by its path, as device.memory.total_capacity_GB."""


def imported_gpu(path: str | Path, base: str = BASE) -> tuple[GpuSheet, str]:
    """Return the GPU of a description, and its TOML; what the file does not say is the ``base``'s.

    Raises InputError naming file, key and value where it is no description, or none that can be evaluated.
    """
    path = Path(path)
    content = _content(path)
    attributes = _attributes(_values(path, content), load_sheet(base, "--base"), path)
    kind = str(content["device"].get("memory_protocol", "")).lower()
    if kind in gpu_schema()["dram_type"].choices:
        attributes["dram_type"] = kind
    sheet = gpu_from_mapping({"base": base, **attributes}, str(path), path.stem)
    title = printable(str(content.get("name") or path.stem))
    lines = [
        f"# From {printable(path.name)}, a description of LLMCompass. What it does not say is {base}'s: latencies,",
        "# the L2's slices, instructions, power. Check them: 'dse show gpu' prints every attribute with its source.",
        f"name = {literal(title)}",
        f"base = {literal(base)}",
        *(f"{name} = {literal(sheet.entries[name].value)}" for name in attributes),
    ]
    return sheet, "\n".join(lines) + "\n"


def _content(path: Path) -> dict[str, Any]:
    text = read_text(path)
    with parsing(path, "JSON"):
        content = json.loads(text)
    if not isinstance(content, dict) or not isinstance(content.get("device"), dict):
        raise InputError(f"{path}: is no hardware description of LLMCompass: it has no object 'device'")
    return content


class _MissingError(Exception):
    """A description does not say what an attribute needs: it stays the base's."""


def _values(path: Path, content: dict[str, Any]) -> Values:
    def value(name: str) -> float:
        found: Any = content
        for key in name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise _MissingError(name)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e18:
            raise InputError(f"{path}: {name} = {shown(found)} is not accepted; give a number above 0")
        return float(found)

    return value


CHIPLET = "device.compute_chiplet"
CORE = f"{CHIPLET}.core"
ARRAY, REGISTERS = f"{CORE}.systolic_array", f"{CORE}.register_file"
LINK, IO = "interconnect.link", "device.io"
SUBLANES = f"{CORE}.sublane_count"
"""Paths of what a description says."""


def _attributes(value: Values, base: GpuSheet, path: Path) -> dict[str, Any]:
    """What the description says of a GPU, as attributes."""

    def product(*names: str) -> float:
        return prod(map(value, names))

    bits = (f"{IO}.memory_channel_active_count", f"{IO}.pin_count_per_channel")
    rules: dict[str, Callable[[], float]] = {
        "sm_count": lambda: product(f"{CHIPLET}.core_count", "device.compute_chiplet_count"),
        "sm_enabled_fraction": lambda: _part(path, value, f"{CHIPLET}.core_count", f"{CHIPLET}.physical_core_count"),
        "boost_clock_mhz": lambda: value("device.frequency_Hz") / MEGA,
        "tensor_clock_mhz": lambda: value("device.frequency_Hz") / MEGA,
        "subcores_per_sm": lambda: value(f"{CORE}.sublane_count"),
        "registers_per_sm": lambda: product(f"{REGISTERS}.num_reg_files", f"{REGISTERS}.num_registers", SUBLANES),
        "l1_kib": lambda: value(f"{CORE}.SRAM_KB"),
        "shared_memory_kib": lambda: min(base.numbers()["shared_memory_kib"], value(f"{CORE}.SRAM_KB")),
        "fp32_lanes": lambda: product(f"{CORE}.vector_unit.fp32_count", SUBLANES),
        "int32_lanes": lambda: product(f"{CORE}.vector_unit.int32_count", SUBLANES),
        "fp64_lanes": lambda: product(f"{CORE}.vector_unit.fp64_count", SUBLANES),
        "tensor_cores_per_sm": lambda: value(SUBLANES),
        "l2_mib": lambda: value(f"{IO}.global_buffer_MB"),
        "l2_enabled_fraction": lambda: _part(path, value, f"{IO}.global_buffer_MB", f"{IO}.physical_global_buffer_MB"),
        "dram_gb": lambda: value("device.memory.total_capacity_GB"),
        "dram_bus_bits": lambda: product(*bits),
        "dram_bandwidth_gbs": lambda: product(*bits, f"{IO}.bandwidth_per_pin_bit") / BITS_PER_BYTE / GIGA,
        "nvlink_gbs": lambda: (
            product(f"{LINK}.bandwidth_per_direction_byte", "interconnect.link_count_per_device") / GIGA
        ),
    }
    found: dict[str, Any] = {}
    for name, rule in rules.items():
        with suppress(_MissingError):
            found[name] = _whole(rule())
    with suppress(_MissingError):
        fma = product(f"{ARRAY}.array_width", f"{ARRAY}.array_height", f"{ARRAY}.mac_per_cycle")
        found |= _tensor_rates(fma, base)
    return found


def _part(path: Path, value: Values, used: str, whole: str) -> float:
    if value(used) > value(whole):
        raise InputError(f"{path}: {used} = {value(used):g} is more than {whole} = {value(whole):g}; give at most that")
    return value(used) / value(whole)


def _tensor_rates(fma: float, base: GpuSheet) -> dict[str, float]:
    """Rates of the types that the base's tensor cores share, in its proportions: the description says FP16's alone."""
    numbers = base.numbers()
    ratio = fma / numbers[f"{TENSOR_RATE}fp16"] if numbers[f"{TENSOR_RATE}fp16"] else 1.0
    names = [kind.tensor_rate for kind in data_types().values() if kind.operands and kind.tensor_array != FP64_ARRAY]
    return {name: numbers[name] * ratio for name in names if numbers[name]}


def _whole(number: float) -> float | int:
    return int(number) if number == int(number) else number
