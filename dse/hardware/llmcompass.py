"""Hardware descriptions of LLMCompass (PrincetonUniversity/LLMCompass, configs/*.json) as GPU TOMLs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, shown
from dse.base.text_file import parsing, printable, read_text
from dse.base.toml_text import literal
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


def _values(path: Path, content: dict[str, Any]) -> Values:
    def value(name: str) -> float:
        found: Any = content
        for key in name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e18:
            raise InputError(f"{path}: {name} = {shown(found)} is not accepted; give a number above 0")
        return float(found)

    return value


def _attributes(value: Values, base: GpuSheet, path: Path) -> dict[str, Any]:
    """What the description says of a GPU, as attributes."""
    chiplet, core = "device.compute_chiplet", "device.compute_chiplet.core"
    chiplets, sublanes = value("device.compute_chiplet_count"), value(f"{core}.sublane_count")
    if value(f"{chiplet}.core_count") > value(f"{chiplet}.physical_core_count"):
        raise InputError(f"{path}: {chiplet}.core_count is more than physical_core_count; give at most that")
    array = f"{core}.systolic_array"
    fma = value(f"{array}.array_width") * value(f"{array}.array_height") * value(f"{array}.mac_per_cycle")
    clock = value("device.frequency_Hz") / 1e6
    bits = value("device.io.memory_channel_active_count") * value("device.io.pin_count_per_channel")
    registers = value(f"{core}.register_file.num_reg_files") * value(f"{core}.register_file.num_registers")
    l1, l2 = value(f"{core}.SRAM_KB"), value("device.io.global_buffer_MB")
    link = value("interconnect.link.bandwidth_per_direction_byte") * value("interconnect.link_count_per_device")
    return {
        "sm_count": _whole(value(f"{chiplet}.core_count") * chiplets),
        "sm_enabled_fraction": value(f"{chiplet}.core_count") / value(f"{chiplet}.physical_core_count"),
        "boost_clock_mhz": clock,
        "tensor_clock_mhz": clock,
        "subcores_per_sm": _whole(sublanes),
        "registers_per_sm": _whole(registers * sublanes),
        "l1_kib": l1,
        "shared_memory_kib": min(base.numbers()["shared_memory_kib"], l1),
        **{
            f"{kind}_lanes": _whole(value(f"{core}.vector_unit.{kind}_count") * sublanes)
            for kind in ("fp32", "int32", "fp64")
        },
        "tensor_cores_per_sm": _whole(sublanes),
        **_tensor_rates(fma, base),
        "l2_mib": l2,
        "l2_enabled_fraction": l2 / value("device.io.physical_global_buffer_MB"),
        "dram_gb": value("device.memory.total_capacity_GB"),
        "dram_bus_bits": _whole(bits),
        "dram_bandwidth_gbs": bits * value("device.io.bandwidth_per_pin_bit") / 8e9,
        "nvlink_gbs": link / 1e9,
    }


def _tensor_rates(fma: float, base: GpuSheet) -> dict[str, float]:
    """Rates of the types that the base's tensor cores share, in its proportions: the description says FP16's alone."""
    numbers = base.numbers()
    ratio = fma / numbers[f"{TENSOR_RATE}fp16"] if numbers[f"{TENSOR_RATE}fp16"] else 1.0
    names = [kind.tensor_rate for kind in data_types().values() if kind.operands and kind.tensor_array != FP64_ARRAY]
    return {name: numbers[name] * ratio for name in names if numbers[name]}


def _whole(number: float) -> float | int:
    return int(number) if number == int(number) else number
