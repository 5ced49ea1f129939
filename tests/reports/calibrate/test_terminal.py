"""Fits in the terminal: how many rows carry them, and a line a coefficient at 80 columns."""

from io import StringIO

from rich.console import Console

from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.document import Answer
from dse.reports.calibrate.terminal import print_power_fit


def answered(skipped: dict[str, int]) -> str:
    """What is printed of a fit to four rows, 80 columns wide."""
    model = {"name": "board", "train": 4.6, "leave_families_out": 6.8, "interval": [0.3, 13.3], "headline": True}
    energies = [
        Coefficient("voltage_slope", 0.7411, "pJ/(mm2 cycle)", 0.404, 1.804, 0.02),
        Coefficient("tensor_bf16", 1.475, "pJ/FMA", 0.4681, 2.102, 0.9),
    ]
    answer = Answer("board", "mine", "rows.csv", "", 4, skipped, 1.0, "rows", [model], energies, None, [])
    text = StringIO()
    print_power_fit(answer, Console(file=text, width=80))
    return text.getvalue()


def test_rows_that_were_skipped_are_counted_in_the_first_line() -> None:
    assert answered({"shorter than 200 us": 21}).startswith("rows.csv: 4 of 25 rows fitted, board")
    assert answered({}).startswith("rows.csv: 4 rows fitted, board")


def test_a_coefficient_takes_a_line() -> None:
    lines = answered({}).splitlines()
    slope, bf16 = (next(line for line in lines if name in line) for name in ("voltage_slope", "tensor_bf16"))
    assert slope.rstrip().endswith("prior") and not bf16.rstrip().endswith("prior")
    assert lines.index(bf16) == lines.index(slope) + 1
