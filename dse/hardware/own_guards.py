"""What a GPU of a user's own comes to: its derived peaks, and rates that stayed the base's while another changed."""

from dse.base.units import BITS_PER_BYTE
from dse.hardware.data_types import data_types
from dse.hardware.own_memory import ASSUMED, KEPT, OF_TYPE, STATED
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import GpuSheet, gpu_index, preset_sheet

SAME = 1e-6
"""Two rates that differ by less are the same [1]."""


def own_gpu_notes(sheet: GpuSheet) -> list[str]:
    """Return what a reader checks of a GPU that is no preset: its peaks, and tensor rates that were left behind.

    Nothing of a preset as it is.
    """
    base = sheet.base or sheet.name
    if not any(entry.status == STATED for entry in sheet.entries.values()):
        return []
    left = unlinked_note(sheet, preset_sheet(base)) if base in gpu_index() else []
    return [peaks_note(sheet), *memory_note(sheet), *left]


def memory_note(sheet: GpuSheet) -> list[str]:
    """Return what a memory of one's own comes to, and which of its numbers are assumed; nothing of a shipped type."""
    entries, numbers = sheet.entries, sheet.numbers()
    if not any(numbers[name] for name in OF_TYPE):
        return []
    gbps = BITS_PER_BYTE * numbers["dram_bandwidth_gbs"] / numbers["dram_bus_bits"]
    assumed = [entries[name] for name in (*OF_TYPE, *KEPT) if entries[name].status == ASSUMED]
    told = ", ".join(f"{one.attribute.name} {one.value:g} ({one.source.partition(': ')[2]})" for one in assumed)
    return [
        f"Its memory: {numbers['dram_bus_bits']:,.0f} bits at {gbps:.3g} Gbit/s a pin, {numbers['dram_gb']:,.0f} GB, "
        f"{numbers['dram_pj_per_bit']:.3g} pJ/bit" + (f"; assumed: {told}." if told else ".")
    ]


def peaks_note(sheet: GpuSheet) -> str:
    """Return the dense peaks of a GPU by data type [TFLOPS] and its bandwidths [GB/s], as data sheets state them."""
    numbers = sheet.numbers()
    kinds = [data_types()[name] for name in sheet.tensor_types()]
    tensor = [f"{kind.title} {peak_tflops(numbers, 'tensor', kind.name):,.0f}" for kind in kinds]
    vector = f"FP32 {peak_tflops(numbers, 'vector', 'fp32'):,.0f}"
    links = f", NVLink {numbers['nvlink_gbs']:,.0f} GB/s a direction" if numbers["nvlink_gbs"] else ""
    return (
        f"This GPU has dense peaks of {', '.join([*tensor, vector])} TFLOPS; "
        f"DRAM {numbers['dram_bandwidth_gbs']:,.0f} GB/s{links}."
    )


def unlinked_note(sheet: GpuSheet, base: GpuSheet) -> list[str]:
    """Return a warning where the tensor rate of one type differs from the base's and that of another does not."""
    numbers, before = sheet.numbers(), base.numbers()
    rates = {kind.title: kind.tensor_rate for kind in data_types().values() if kind.operands}
    known = {title: name for title, name in rates.items() if before[name] and title != "FP64"}
    changed = [title for title, name in known.items() if abs(numbers[name] / before[name] - 1) > SAME]
    stayed = [title for title in known if title not in changed]
    if not changed or not stayed:
        return []
    return [
        f"The tensor rate of {', '.join(changed)} differs from {base.name}'s, and that of {', '.join(stayed)} is the "
        "base's: state it too if all types were meant."
    ]
