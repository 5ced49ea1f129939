"""What is new about a GPU to a fit, its memory type, its generation or the GPU alone, and how much wider errors are.

A memory type is HBM or GDDR; a generation is an architecture (Ampere, Hopper ...), whatever the market. The widening is
learnt from classes of GPUs that were left out of a fit (experiments/023_novelty).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, sqrt

from dse.base.error_interval import ErrorInterval
from dse.base.package_tables import read_table
from dse.hardware.presets import GpuSheet, gpu_index, preset_sheet

TABLE = "calibration/novelty.csv"

GPU, MEMORY_TYPE, GENERATION = KINDS = ("gpu", "memory_type", "generation")
"""Kinds of novelty, as the table names them; what is new of memory or generation is new as a GPU, too."""

HBM, GDDR = "HBM", "GDDR"
"""Memory types: stacks beside the die, and chips on the board."""


@dataclass(frozen=True)
class Novelty:
    """What of a GPU no row of a fit has: its ``memory_type`` and its ``generation`` by name, "" where some row has it.

    ``gpu``: whether no row is of the GPU itself; then nothing else is new where it is False.
    """

    gpu: bool = False
    memory_type: str = ""
    generation: str = ""

    @property
    def widening(self) -> float:
        """How many times as wide as that of GPUs left out one by one an interval is, in logarithms [1]."""
        if not self.gpu:
            return 1.0
        share = shares()
        new = (GPU, MEMORY_TYPE * bool(self.memory_type), GENERATION * bool(self.generation))
        return sqrt(sum(share[kind] for kind in new if kind))

    @property
    def words(self) -> str:
        """What is new and how much wider that makes an interval, "" for nothing new."""
        if not self.gpu:
            return ""
        named = {"memory type": self.memory_type, "generation": self.generation}
        new = " and ".join(f"{what} {name}" for what, name in named.items() if name) or "GPU"
        return f"{self.widening:.2f} times as wide: {new} never fitted"


NOTHING_NEW = Novelty()


def memory_type(sheet: GpuSheet) -> str:
    """Return a GPU's memory type, HBM or GDDR."""
    return HBM if str(sheet.entries["dram_type"].value).startswith("hbm") else GDDR


def generation(sheet: GpuSheet) -> str:
    """Return a GPU's generation: the architecture of the presets with its compute capability, else with the next
    below."""
    mine, known = sheet.numbers()["compute_capability"], _architectures()
    return known[max((c for c in known if c <= mine), default=min(known))]


@cache
def _architectures() -> dict[float, str]:
    supported = [name for name, row in gpu_index().items() if row["supported"] == "1"]
    return {preset_sheet(n).numbers()["compute_capability"]: gpu_index()[n]["architecture"] for n in supported}


def novelty(sheet: GpuSheet, fitted: Iterable[GpuSheet]) -> Novelty:
    """Return what is new about a GPU that no row of a fit is of; ``fitted``: the GPUs of its rows."""
    fitted = list(fitted)
    new_memory = memory_type(sheet) not in map(memory_type, fitted)
    new_generation = generation(sheet) not in map(generation, fitted)
    return Novelty(True, memory_type(sheet) if new_memory else "", generation(sheet) if new_generation else "")


@cache
def shares() -> dict[str, float]:
    """Return kind of novelty -> its share of the variance of an error, of that of GPUs left out one by one [1]."""
    return {row["kind"]: float(row["value"]) for row in read_table(TABLE)}


def widened(interval: ErrorInterval, new: Novelty) -> ErrorInterval:
    """Return the error interval of a GPU of which something is new: wider about its middle, and said so."""
    if not new.gpu:
        return interval
    low, high = widened_ends(log(interval.low), log(interval.high), new.widening)
    return replace(interval, low=exp(low), high=exp(high), source=f"{interval.source}, {new.words}")


def widened_ends(low: float, high: float, widening: float) -> tuple[float, float]:
    """Return the ends of an interval of log errors that is so many times as wide, about its middle."""
    middle, half = (low + high) / 2, widening * (high - low) / 2
    return middle - half, middle + half
