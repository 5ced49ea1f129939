"""What is known of the area of tensor cores, in a sentence: wherever their rate is turned, the answer says so."""

from dse.hardware.area import DieArea
from dse.hardware.data_types import FP64_ARRAY, TENSOR_DTYPES, TENSOR_RATE, data_types
from dse.hardware.presets import GpuSheet

TENSOR_AXES = (
    "tensor_cores_per_sm",
    *(TENSOR_RATE + dtype for dtype in TENSOR_DTYPES if data_types()[dtype].tensor_array != FP64_ARRAY),
)
"""Attributes that the shared multipliers of tensor cores grow with."""

EVIDENCE = "die shots of Turing, blocks of GA10B and Thor, whole dies: dse/data/process/tensor_evidence.csv"


def tensor_area_note(sheet: GpuSheet) -> str:
    """Return what the tensor cores of a GPU take, and what a higher rate costs, within all evidence; "" without any."""
    area, gpu = DieArea.from_table(), sheet.record()
    value, low, high = (float(end) for end in area.tensor_range(gpu))
    if not value:
        return ""
    return (
        f"Area of tensor cores: {value:.0f} of the {float(area.total(gpu)):.0f} mm2 of {sheet.title}, {low:.0f} to "
        f"{high:.0f} by the evidence ({EVIDENCE}). Doubling the rate of every type but FP64 costs {value:.0f} mm2 "
        f"({low:.0f} to {high:.0f}), four times the rate {3 * value:.0f} ({3 * low:.0f} to {3 * high:.0f})"
    )


def turned_note(sheet: GpuSheet, base: GpuSheet) -> str:
    """Return the note where a GPU has other tensor cores than the one that it was made from, "" elsewhere."""
    own, other = sheet.numbers(), base.numbers()
    return tensor_area_note(sheet) if any(own[name] != other[name] for name in TENSOR_AXES) else ""
