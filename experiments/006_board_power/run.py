"""Fit the board power model to what several boards drew, and judge it on each board left out of the fit.

Reads experiments/data; ``--write`` puts the fitted coefficients and the errors on boards left out into dse/data/power.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from devices import DEVICES, PUBLISHED, serving_rows, serving_watts, streaming_watts
from identified import profile
from judged import arrays, baselines, gradient_boosting, interval, scores, slowdowns, statistics
from rows import load_rows, masks, pair_rows, power_rows
from several import BOARDS, FITTED, judged_parts, ratios, without

from dse.base.csv_table import read_table_file
from dse.base.package_tables import read_table
from dse.calibration.power.board_fit import prior_model
from dse.measured.board_watts import SETTLED_US, watts_of
from dse.power.board import BoardPower

TABLES = Path(__file__).resolve().parents[2] / "dse" / "data" / "power"


def coefficient_table(values: dict[str, float]) -> None:
    """Put fitted values into board.csv: the prior stays beside each."""
    path = TABLES / "board.csv"
    rows = read_table("power/board.csv")
    for row in rows:
        if (name := row["coefficient"]) in values:
            row["value"] = f"{values[name]:.4g}"
    _write(path, rows)


def error_table(out: dict[str, np.ndarray]) -> None:
    """Put the errors of boards left out into board_error.csv: the error interval that the page prints.

    ``out``: predicted over measured of each board, by the fit that has not seen it (rows,).
    """
    source = f"experiments/006_board_power: {', '.join(out)}, each left out of the fit and each alike"
    unit = {"rows": "row"}
    rows = [(name, f"{value:.4g}", unit.get(name, "1"), source) for name, value in statistics(out).items()]
    _write(
        TABLES / "board_error.csv", [dict(zip(("statistic", "value", "unit", "source"), r, strict=True)) for r in rows]
    )


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(name: str, found: dict[str, float]) -> None:
    """Print a line of the result."""
    print(f"| {name} | " + " | ".join(f"{x:.2f}" if k == "bias" else f"{x:.1f}" for k, x in found.items()) + " |")


def report_boards(values: dict[str, float]) -> dict[str, np.ndarray]:
    """Print the errors of the fit to all boards and of fits without each, and the coefficients of all of them.

    Returned: predicted over measured of each board by the fit that has not seen it.
    """
    parts = judged_parts()
    fits = {board: without(board) for board in BOARDS}
    seen = ratios(values, parts)
    unseen = {board: ratios(fitted, parts) for board, fitted in fits.items()}
    print("| what | rows | seen: mean | median | bias | its board left out: mean | median | bias |")
    for part in parts:
        everything = np.ones(len(part.watts), bool)
        kinds = {kind: part.kind == kind for kind in np.unique(part.kind)} if part.name in BOARDS else {}
        for kind, mine in ({"all": everything} | kinds).items():
            both = (seen, unseen[part.board]) if part.board in unseen else (seen,)
            cells = [cell for found in both for cell in _cells(found[part.name][mine])]
            print(f"| {part.name}, {kind} | {mine.sum()} | {' | '.join(cells)} |")
    print("| coefficient | all | " + " | ".join(f"without {board}" for board in BOARDS) + " |")
    for name in FITTED:
        print(f"| {name} | " + " | ".join(f"{fitted[name]:.3g}" for fitted in (values, *fits.values())) + " |")
    return {board: unseen[board][board] for board in BOARDS}


def _cells(ratio: np.ndarray) -> list[str]:
    """Mean and median error [%] and bias of predicted over measured."""
    error = 100 * np.abs(ratio - 1)
    return [f"{error.mean():.1f}", f"{np.median(error):.1f}", f"{np.exp(np.mean(np.log(ratio))):.2f}"]


def report_h200(values: dict[str, float]) -> BoardPower:
    """Print errors on an H200's families left out, by operator and regime, baselines, own time, the limit's law."""
    rows, pairs = power_rows(), pair_rows()
    model, kinds, op = prior_model().with_values(arrays(values)), masks(rows), rows.table.op.to_numpy()
    watts = watts_of(model, rows)
    print("| what | rows | mean | median | bias |")
    for kind, keep in kinds.items():
        show(f"model, {kind}", scores(rows, watts, keep))
    print(
        "| 95 % of the held-out mean, by families | "
        + " to ".join(f"{x:.1f}" for x in interval(rows, watts, kinds["held out"]))
    )
    others = {"priors alone": watts_of(prior_model(), rows)} | baselines(rows)
    others |= {"boosted trees on shapes": gradient_boosting(rows), "model at its own time": watts_of(model, rows, True)}
    for name, other in others.items():
        show(f"{name}, held out", scores(rows, other, kinds["held out"]))
    capped = rows.table.power_w.to_numpy() > 670
    for name in np.unique(op):
        show(f"{name}, held out", scores(rows, watts, kinds["held out"] & (op == name)))
    show("not at the limit, held out", scores(rows, watts, kinds["held out"] & ~capped))
    show("constant, not at the limit, held out", scores(rows, others["constant"], kinds["held out"] & ~capped))
    us = rows.table.latency_us.to_numpy()
    for low, high in ((0, 10), (10, 50), (50, 200), (200, 500), (500, 2000), (2000, 1e9)):
        show(f"{low} to {high:g} us", scores(rows, watts, (us >= low) & (us < high)))
    out, at_limit = pairs.table.held_out.to_numpy(), pairs.table.power_w.to_numpy() > 670
    laws = slowdowns(model, pairs)
    for name, law in laws.items():
        error = 100 * np.abs(law / laws["measured"] - 1)
        cells = [error[at_limit & out], error[at_limit & ~out], error[out], error[~out]]
        print(f"| sustained time, {name} | " + " | ".join(f"{c.mean():.1f} ({len(c)})" for c in cells) + " |")
    return model


def report_devices(model: BoardPower) -> None:
    """Print the errors on other devices, and the published points."""
    table = serving_rows()
    table["model"] = [serving_watts(model, DEVICES[r.device], r.text, r.latency_us) for r in table.itertuples()]
    table["error"] = 100 * (table.model / table.power_w - 1).abs()
    table["ratio"] = np.log(table.model / table.power_w)
    for (source, device), group in table.groupby(["source", "device"]):
        found = {"rows": len(group), "mean": group.error.mean(), "median": group.error.median()}
        show(f"{source} {device}", found | {"bias": float(np.exp(group.ratio.mean()))})
    for preset, *rates, read in PUBLISHED:
        print(f"| {preset} | {rates} | {read:g} | {streaming_watts(model, preset, *rates):.0f} |")


def report_identified() -> None:
    """Print the loss of fits with a coefficient held at either end of its range, the others refitted."""
    for name, (low, high) in profile().items():
        print(f"| {name} | {low:.2f} | {high:.2f} |")


def main() -> None:
    """Fit to all boards, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put coefficients and errors into dse/data/power")
    parser.add_argument(
        "--devices", action="store_true", help="compare with serving power and published points of other GPUs"
    )
    parser.add_argument("--identified", action="store_true", help="profile the coefficients (ten minutes)")
    parser.add_argument("--table", type=Path, help="judge the shipped model on another table of this schema")
    parser.add_argument("--preset", default="h200", help="the GPU of --table")
    options = parser.parse_args()
    if options.table:
        rows = load_rows(read_table_file(options.table).query("power_w > 0"), options.preset)
        watts, long = watts_of(BoardPower.from_table(), rows), rows.table.latency_us.to_numpy() >= SETTLED_US
        show(f"{options.preset}, {SETTLED_US:g} us and longer", scores(rows, watts, long))
        show(f"{options.preset}, shorter", scores(rows, watts, ~long))
        return
    values = without("")
    out = report_boards(values)
    model = report_h200(values)
    if options.write:
        coefficient_table(values)
        error_table(out)
    if options.devices:
        report_devices(model)
    if options.identified:
        report_identified()


if __name__ == "__main__":
    main()
