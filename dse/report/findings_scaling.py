"""The data of the figures of ``dse scale``."""

from statistics import mean

import pandas as pd

from dse.scaling.scale import ScaleAnswer, SheetAnswer


def curves(answer: SheetAnswer) -> pd.DataFrame:
    """Performance against size: a row a benchmark, size and ``series`` ("table", or a method), with ipc, low, high."""
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
    """Errors [%]: a row a method and size, with mean and max over the benchmarks."""
    rows = [
        {"method": method, "size": size} | error
        for method, sizes in answer.errors().items()
        for size, error in sizes.items()
    ]
    return pd.DataFrame(rows, columns=["method", "size", "mean", "max"])


def speed_ups(answer: ScaleAnswer) -> pd.DataFrame:
    """Simulation time of a target over that of its two scale models: a row a sheet, benchmark and size; the benchmark
    "mean" is the mean of a sheet's."""
    rows = []
    for sheet in answer.sheets:
        found = [{"sheet": sheet.sheet.name, "unit": sheet.sheet.unit} | s._asdict() for s in sheet.speed_ups]
        for size in sorted({s.size for s in sheet.speed_ups}):
            factor = mean(s.factor for s in sheet.speed_ups if s.size == size)
            found.append({"sheet": sheet.sheet.name, "unit": sheet.sheet.unit, "benchmark": "mean", "size": size,
                          "factor": factor})  # fmt: skip
        rows += found
    return pd.DataFrame(rows, columns=["sheet", "unit", "benchmark", "size", "factor"])


def coverage_text(answer: SheetAnswer) -> str:
    """Return how often the recursion's interval held the truth, "" where there is none."""
    held = [f"{inside} of {n} at {size:g}" for size, (inside, n) in answer.coverage().items()]
    return (
        f"The recursion's interval holds the table's value for {', '.join(held)} {answer.sheet.unit}s." if held else ""
    )


def scaling_notes(answer: ScaleAnswer) -> list[str]:
    """Return what was skipped and why, and the answer's own notes."""
    return [f"skipped: {reason} ({count})" for reason, count in answer.skipped.items()] + list(answer.notes)
