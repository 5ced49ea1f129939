"""Scale-model prediction on the authors' table: errors of every method, intervals, other scale models.

Run with ``python experiments/009_scale_model/run.py TABLE`` (seconds); TABLE is ``scale_model_data.xlsx`` of the
paper's public repository, or named in GPU_DSE_SCALE_MODEL. Writes the README's table and prints what is finer.
"""

import argparse
import os
from pathlib import Path

from dse.reports.scale.data import error_table, speed_ups
from dse.scaling.scale import ScaleAnswer, scale
from experiments.common.readme_tables import markdown, write_table

SHOWN = {
    ("singleStrongScaling", 64): "strong 64 SMs",
    ("singleStrongScaling", 128): "strong 128 SMs",
    ("singleWeakScaling", 128): "weak 128 SMs",
    ("multiWeakScaling", 16): "16 chiplets",
}
"""Sheet and size -> column of the README's table."""

PAPER = {
    (method, name): f" ({told})"
    for method, cells in {
        "recursion": ("3.5 / 13", "4 / 17", "1.7 / 4.5", "2.5 / 4.3"),
        "proportional": ("10 / 52", "22 / 113", "7 / 18", "20 / 58"),
        "linear": ("6 / 23", "17 / 68", "5.2 / 12", "4.7 / 9"),
        "power_law": ("4 / 13", "12 / 55", "3.6 / 9", "3.7 / 8"),
        "logarithmic": ("48 / 55", "69 / 86", "67 / 70", "25 / 33"),
    }.items()
    for name, told in zip(SHOWN.values(), cells, strict=True)
}
"""The paper's figures: mean / largest error [%]."""

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


def errors_table(answer: ScaleAnswer) -> str:
    """Return the README's table: mean / largest error [%] by method and target, the paper's in brackets."""
    columns = {}
    for sheet in answer.sheets:
        frame = error_table(sheet)
        for size, part in frame.groupby("size"):
            if (sheet.sheet.name, size) in SHOWN:
                cells = [f"{m:.2f} / {x:.1f}" for m, x in zip(part["mean"], part["max"], strict=True)]
                columns[SHOWN[sheet.sheet.name, size]] = dict(zip(part["method"], cells, strict=True))
    methods = list(dict.fromkeys(method for column in columns.values() for method in column))
    rows = [
        [method, *(f"{column.get(method, '')}{PAPER.get((method, name), '')}" for name, column in columns.items())]
        for method in methods
    ]
    return markdown(["method", *columns], rows)


def main() -> None:
    """Write the README's table, and print what is finer."""
    named = os.environ.get("GPU_DSE_SCALE_MODEL")
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path, nargs="?" if named else None, default=named)
    table = Path(parser.parse_args().table)
    answer = scale(table)
    print_errors(answer)
    write_table(Path(__file__).parent / "README.md", "errors", errors_table(answer))
    frame = speed_ups(answer)
    print(frame[frame["benchmark"] == "mean"].to_string(index=False))
    other_models(table)


if __name__ == "__main__":
    main()
