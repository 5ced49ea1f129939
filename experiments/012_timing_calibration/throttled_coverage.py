"""Rows within their interval where a board throttles, or may: products of boards with few watts for their arithmetic.

Run with ``python experiments/012_timing_calibration/throttled_coverage.py`` (a minute on two cores). Writes its table
into ``experiments/README.md``. Before: the interval of the times alone. Now: with what the error of the watts makes of
the fixed point of clock and power. All rows are held to the intervals of GPUs that no fit has seen, also those that
made intervals of their own.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dse.measured.device_models import device_models
from dse.power.throttles import NO, OPEN
from dse.timing.calibration import UNSEEN
from dse.validation.group_errors import with_intervals
from dse.validation.time import validate_time
from experiments import data

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- throttled_coverage begins -->", "<!-- throttled_coverage ends -->"

TABLES = (
    ("deepbench__gemm_released", "T4"),
    ("neusight__gemm_fp32", "T4"),
    ("neusight__gemm_fp32", "A100-PCIE-40GB"),
    ("aiconfigurator__gemm_released", "L40S"),
    ("vidur__gemm_released", "A40"),
)
"""Table and device of each set of products."""

LEAST_US = 50.0
"""Rows that last less are left out: of short ones what a launch costs decides [us]."""


def evaluated(table: str, device: str) -> pd.DataFrame:
    """Return the products of a device from LEAST_US on, with their intervals now and before (``low_before`` ...)."""
    frame = data.frame(table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table}.parquet"
        frame[(frame["device"] == device) & (frame["latency_us"] >= LEAST_US)].to_parquet(path)
        rows = validate_time(path).rows
    used = device_models(rows)[0][device]
    assert used.calibration is not None
    unseen = tuple(known for known in used.calibration.error_quantiles if known.gpu == UNSEEN)
    models = {device: replace(used, calibration=replace(used.calibration, error_quantiles=unseen))}
    alone = rows.assign(low_power_us=rows["predicted_us"], high_power_us=rows["predicted_us"])
    before = with_intervals(alone, models)
    return with_intervals(rows, models).assign(low_before=before["low_us"], high_before=before["high_us"])


def within(rows: pd.DataFrame, low: str = "low_us", high: str = "high_us") -> str:
    """Return the share of rows within their interval [%] and the median of its upper over its lower end, as cells."""
    inside = (rows["latency_us"] >= rows[low]) & (rows["latency_us"] <= rows[high])
    return f"{100 * inside.mean():.1f} | {(rows[high] / rows[low]).median():.2f}"


def lines() -> Iterator[str]:
    """Yield the table: of each set of products all rows, and those of which the board throttles or may."""
    yield "| products from 50 us | rows | of them open | before, % | width | now, % | width |"
    yield "|---" * 7 + "|"
    for table, device in TABLES:
        known = evaluated(table, device).dropna(subset=["low_us"])
        for (op, dtype), rows in known.groupby(["op", "dtype"]):
            may = rows[rows["throttles"] != NO]
            for name, some in ((f"{device}, {op} {dtype} ({table})", rows), ("that throttle or may", may)):
                cells = [name, str(len(some)), str((some["throttles"] == OPEN).sum())]
                yield f"| {' | '.join(cells)} | {within(some, 'low_before', 'high_before')} | {within(some)} |"


def main() -> None:
    """Print the table and write it into the README."""
    text = "\n".join(lines())
    print(text)
    readme = README.read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
