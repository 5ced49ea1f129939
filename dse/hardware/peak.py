"""Peak rates of a GPU from its attributes, and the check of a preset against its data sheet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.hardware.data_types import TENSOR_DTYPES, VECTOR_DTYPES, data_types

PEAK_METRICS = {f"peak_{dtype}_tflops": data_types()[dtype] for dtype in ("bf16", "fp8")}
"""Metric of a design -> the data type whose dense peak it is."""

TOLERANCE = 0.02
"""Largest accepted relative difference between a sheet's peak and the record's."""


@dataclass(frozen=True)
class PeakCheck:
    """A data sheet's dense peak beside SMs x FMA x 2 x clock [TFLOPS]; ``exception`` documents a known conflict."""

    preset: str
    unit: str
    dtype: str
    sheet: float
    record: float
    exception: str
    source: str

    @property
    def difference(self) -> float:
        """Relative difference, record against sheet."""
        return self.record / self.sheet - 1.0

    @property
    def agrees(self) -> bool:
        """Whether the two agree within the tolerance."""
        return abs(self.difference) <= TOLERANCE

    @property
    def looks_sparse(self) -> bool:
        """Whether the sheet's figure is about twice the dense one: a figure with 2:4 sparsity."""
        return abs(self.sheet - 2.0 * self.record) <= TOLERANCE * self.sheet


def peak_tflops(numbers: Mapping[str, Any], unit: str, dtype: str) -> Any:
    """Return the dense peak [TFLOPS] of ``unit`` (``tensor`` or ``vector``) for ``dtype`` from attribute numbers.

    Tensor rates run at the tensor clock, which is never above the boost clock; FP64 and vector rates at the boost
    clock. ``numbers`` may be arrays of designs.
    """
    clock = numbers["boost_clock_mhz"]
    if unit == "tensor":
        rate = numbers[data_types()[dtype].tensor_rate] * numbers["tensor_cores_per_sm"]
        tensor = numbers["tensor_clock_mhz"]
        clock = clock if dtype == "fp64" else tensor * (tensor <= clock) + clock * (tensor > clock)
    else:
        rate = numbers[f"{dtype}_lanes"]
    return numbers["sm_count"] * rate * 2 * clock * 1e-6


def peak_checks(numbers_of: Callable[[str], Mapping[str, float]]) -> list[PeakCheck]:
    """Return the check of every published dense peak in ``data/gpus/peaks.csv``.

    ``numbers_of``: the attributes of a preset by its name (:func:`dse.hardware.presets.preset_numbers`).
    """
    return [
        PeakCheck(
            preset=row["preset"],
            unit=row["unit"],
            dtype=row["dtype"],
            sheet=float(row["dense_tflops"]),
            record=peak_tflops(numbers_of(row["preset"]), row["unit"], row["dtype"]),
            exception=row["exception"],
            source=row["source"],
        )
        for row in read_table("gpus/peaks.csv")
    ]


def refuse_contradictions(peaks: object, numbers: Mapping[str, float], where: str) -> None:
    """Check the dense peaks [TFLOPS] by data type that a GPU file states against its attributes; raises InputError.

    FP32 is the vector peak, and FP64 where the tensor cores have no such type; all others are the tensor cores'.
    """
    if not isinstance(peaks, Mapping):
        raise InputError(f"{where}: peaks = {peaks!r} is not accepted; give a table of dense TFLOPS by data type")
    for dtype, sheet in peaks.items():
        if dtype not in (*VECTOR_DTYPES, *TENSOR_DTYPES):
            known = accepted(dtype, (*VECTOR_DTYPES, *TENSOR_DTYPES))
            raise InputError(f"{where}: peaks.{dtype} is not a data type with a peak; {known}")
        if isinstance(sheet, bool) or not isinstance(sheet, (int, float)) or not 0 < sheet < 1e9:
            raise InputError(f"{where}: peaks.{dtype} = {sheet!r} is not accepted; give a positive number of TFLOPS")
        vector = dtype in VECTOR_DTYPES or (dtype == "fp64" and not numbers["tensor_fma_fp64"])
        unit = "vector" if vector else "tensor"
        _refuse(PeakCheck("", unit, dtype, sheet, peak_tflops(numbers, unit, dtype), "", where), where)


def _refuse(check: PeakCheck, where: str) -> None:
    if check.looks_sparse:
        raise InputError(
            f"{where}: peaks.{check.dtype} = {check.sheet:g} TFLOPS is twice the {check.record:.4g} of the attributes: "
            f"a figure with 2:4 sparsity; give the dense one"
        )
    if not check.agrees:
        clock = "boost_clock_mhz" if check.unit == "vector" or check.dtype == "fp64" else "tensor_clock_mhz"
        raise InputError(
            f"{where}: peaks.{check.dtype} = {check.sheet:g} TFLOPS contradicts sm_count x FMA/cycle x 2 x {clock} = "
            f"{check.record:.4g} TFLOPS by more than {TOLERANCE:.0%}; correct the attributes or the peak"
        )
