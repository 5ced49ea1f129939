"""The data of the figures of ``dse scale``."""

from statistics import mean

import pandas as pd

from dse.scaling.scale import ScaleAnswer, SheetAnswer

ERRORS = ("mean", "max", "n", "shared_mean", "shared_max", "shared_n")
"""Columns of a method's errors at a size."""


def curves(answer: SheetAnswer) -> pd.DataFrame:
    """Return performance against size: a row a benchmark, size and ``series`` ("table", or a method)."""
    rows = [
        {"benchmark": b.name, "series": "table", "size": size, "ipc": ipc}
        for b in answer.sheet.benchmarks
        for size, ipc in zip(b.sizes, b.ipc, strict=True)
        if ipc is not None and b.name in answer.cliffs
    ]
    for point in answer.points:
        low, high = point.interval or (None, None)
        row = {"benchmark": point.benchmark, "series": point.method, "size": point.size, "ipc": point.ipc}
        rows.append(row | {"low": low, "high": high})
    return pd.DataFrame(rows, columns=["benchmark", "series", "size", "ipc", "low", "high"])


def error_table(answer: SheetAnswer) -> pd.DataFrame:
    """Return errors [%], a row a method and size.

    Mean and max are over the ``n`` benchmarks that it predicts, and over the ``shared_n`` that every method predicts.
    """
    rows = [
        {"method": method, "size": size} | error
        for method, sizes in answer.errors().items()
        for size, error in sizes.items()
    ]
    return pd.DataFrame(rows, columns=["method", "size", *ERRORS])


def compared_text(answer: SheetAnswer) -> str:
    """Return over how many benchmarks methods are compared at each size."""
    frame = error_table(answer)
    if frame.empty:
        return ""
    by_size = frame.groupby("size").agg(shared=("shared_n", "first"), most=("n", "max"))
    counts = [
        f"{row.shared} of {row.most} at {size:g}" for size, row in zip(by_size.index, by_size.itertuples(), strict=True)
    ]
    words = f"Over the benchmarks that every method predicts: {', '.join(counts)} {answer.sheet.unit}s."
    return words + (" In brackets: how many a method predicts." if unequal(frame) else "")


def unequal(frame: pd.DataFrame) -> bool:
    """Return whether, in an :func:`error_table`, methods predict different benchmarks of a size."""
    return bool((frame["n"] != frame["shared_n"]).any())


def speed_ups(answer: ScaleAnswer) -> pd.DataFrame:
    """Return the simulation time of a target over that of its two scale models, a row a sheet, benchmark and size.

    The benchmark "mean" is the mean of a sheet's.
    """
    rows = []
    for sheet in answer.sheets:
        rows_of_sheet = [{"sheet": sheet.sheet.name, "unit": sheet.sheet.unit} | s._asdict() for s in sheet.speed_ups]
        for size in sorted({s.size for s in sheet.speed_ups}):
            factor = mean(s.factor for s in sheet.speed_ups if s.size == size)
            rows_of_sheet.append(
                {
                    "sheet": sheet.sheet.name,
                    "unit": sheet.sheet.unit,
                    "benchmark": "mean",
                    "size": size,
                    "factor": factor,
                }
            )
        rows += rows_of_sheet
    return pd.DataFrame(rows, columns=["sheet", "unit", "benchmark", "size", "factor"])


def coverage_text(answer: SheetAnswer) -> str:
    """Return how often the truth lay in the recursion's interval, "" where there is none."""
    inside_by_size = [f"{inside} of {n} at {size:g}" for size, (inside, n) in answer.coverage().items()]
    return (
        f"The recursion's interval holds the table's value for {', '.join(inside_by_size)} {answer.sheet.unit}s."
        if inside_by_size
        else ""
    )


def scaling_notes(answer: ScaleAnswer) -> list[str]:
    """Return what was skipped and why, and the answer's own notes."""
    return [f"skipped: {reason} ({count})" for reason, count in answer.skipped.items()] + list(answer.notes)
