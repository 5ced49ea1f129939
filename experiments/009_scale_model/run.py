"""Scale-model prediction on the authors' table: errors of every method, intervals, other scale models.

Run with ``python experiments/009_scale_model/run.py TABLE`` (seconds); TABLE is ``scale_model_data.xlsx`` of the
paper's public repository. Prints the README's tables.
"""

import argparse
from pathlib import Path

from dse.reports.scale.data import error_table, speed_ups
from dse.scaling.scale import ScaleAnswer, scale

PAIRS = ((8, 16), (16, 32), (32, 64), (8, 32), (8, 64))
"""Scale models tried on the single GPUs."""


def print_errors(answer: ScaleAnswer) -> None:
    """Print mean and largest error by sheet, method and size, and how often the interval held."""
    for sheet in answer.sheets:
        print(f"{sheet.sheet.name} from {sheet.small:g} and {sheet.large:g}; interval held: {sheet.coverage()}")
        frame = error_table(sheet)
        frame["error"] = [f"{m:.2f} / {x:.1f}" for m, x in zip(frame["mean"], frame["max"], strict=True)]
        print(frame.pivot(index="method", columns="size", values="error").to_string())


def other_models(table: Path) -> None:
    """Print the recursion's error at 128 SMs from other pairs of scale models."""
    for small, large in PAIRS:
        answer = scale(table, small, large)
        for sheet in answer.sheets[:2]:
            found = sheet.errors()
            told = [
                f"{m} {found[m][128.0]['mean']:.2f} / {found[m][128.0]['max']:.1f}" for m in ("recursion", "power_law")
            ]
            print(f"{sheet.sheet.name} {small:3d} and {large:3d}: {', '.join(told)}")
        print("   skipped:", {k: v for k, v in answer.skipped.items() if not k.startswith("no size above")})


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    table = parser.parse_args().table
    answer = scale(table)
    print_errors(answer)
    frame = speed_ups(answer)
    print(frame[frame["benchmark"] == "mean"].to_string(index=False))
    other_models(table)


if __name__ == "__main__":
    main()
