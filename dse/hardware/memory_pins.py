"""How fast each pin of a DRAM interface sends, beside the fastest that its memory type has."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dse.base.package_tables import read_table
from dse.base.units import BITS_PER_BYTE
from dse.hardware.process import memory_names

ROUNDED = 1.02
"""Rate over the fastest of a type that is no more than the rounding of a data sheet (an A100's HBM2: 2.43 Gbit/s)."""


def fastest_gbps() -> dict[str, float]:
    """Return memory type -> the fastest rate of a pin that a standard or a maker states [Gbit/s]."""
    return {row["dram_type"]: float(row["gbps"]) for row in read_table("process/memory_pins.csv")}


def pin_gbps(numbers: Mapping[str, Any]) -> np.ndarray:
    """Return what the bandwidth asks of each pin [Gbit/s], given a design's, or many designs', numbers."""
    return BITS_PER_BYTE * np.asarray(numbers["dram_bandwidth_gbs"]) / np.asarray(numbers["dram_bus_bits"])


def too_fast(numbers: Mapping[str, Any]) -> np.ndarray:
    """Return whether a design's bandwidth asks more of a pin than its memory, or any of its type, gives."""
    return pin_gbps(numbers) > ROUNDED * _fastest(numbers)


def _fastest(numbers: Mapping[str, Any]) -> np.ndarray:
    """The fastest rate of a pin [Gbit/s]: of a memory of one's own as stated, else of its type."""
    of_type = np.array([fastest_gbps()[name] for name in memory_names()])
    own = np.asarray(numbers["dram_pin_gbps"])
    return np.where(own > 0, own, of_type[np.asarray(numbers["dram_type"]).astype(int)])


def pins_note(numbers: Mapping[str, float]) -> str:
    """Return a sentence where one design's DRAM sends faster than any memory of its type, "" elsewhere."""
    if not too_fast(numbers):
        return ""
    kind = memory_names()[int(numbers["dram_type"])]
    return (
        f"{numbers['dram_bandwidth_gbs']:,.0f} GB/s over {numbers['dram_bus_bits']:,.0f} bits of {kind} are "
        f"{pin_gbps(numbers):.3g} Gbit/s a pin; the fastest has {float(_fastest(numbers)):g}. Give a "
        "wider dram_bus_bits"
    )
