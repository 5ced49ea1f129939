"""Fit the board power model to what several boards drew, and judge it on each board left out of the fit.

Reads experiments/data and writes the README's tables; ``--write`` puts the fitted coefficients and the errors on boards
left out into dse/data/power.
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
from experiments.common.readme_tables import markdown, write_table

TABLES = Path(__file__).resolve().parents[2] / "dse" / "data" / "power"
README = Path(__file__).parent / "README.md"
SCORES = ["what", "rows", "mean", "median", "bias"]


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


def line(name: str, found: dict[str, float]) -> list[str]:
    """Return a line of the result: rows, errors [%] and bias."""
    digits = {"rows": 0, "bias": 2}
    return [name, *(f"{x:.{digits.get(k, 1)}f}" for k, x in found.items())]


def show(name: str, found: dict[str, float]) -> None:
    """Print a line of the result."""
    print(f"| {' | '.join(line(name, found))} |")


def report_boards(values: dict[str, float]) -> dict[str, np.ndarray]:
    """Write the README's errors of the fit to all boards and of fits without each, and all their coefficients.

    Returned: predicted over measured of each board by the fit that has not seen it.
    """
    parts = judged_parts()
    fits = {board: without(board) for board in BOARDS}
    seen = ratios(values, parts)
    unseen = {board: ratios(fitted, parts) for board, fitted in fits.items()}
    rows = []
    for part in parts:
        everything = np.ones(len(part.watts), bool)
        kinds = {kind: part.kind == kind for kind in np.unique(part.kind)} if part.name in BOARDS else {}
        for kind, mine in ({"all": everything} | kinds).items():
            both = (seen, unseen[part.board]) if part.board in unseen else (seen,)
            cells = [cell for found in both for cell in _cells(found[part.name][mine])]
            rows.append([f"{part.name}, {kind}", str(mine.sum()), *cells, *[""] * (6 - len(cells))])
    header = ["what", "rows", "seen: mean", "median", "bias", "its board left out: mean", "median", "bias"]
    write_table(README, "boards", markdown(header, rows))
    fitted_to = [values, *fits.values()]
    found = [[name, *(f"{one[name]:.3g}" for one in fitted_to)] for name in FITTED]
    write_table(README, "coefficients", markdown(["coefficient", "all", *(f"without {b}" for b in BOARDS)], found))
    return {board: unseen[board][board] for board in BOARDS}


def _cells(ratio: np.ndarray) -> list[str]:
    """Mean and median error [%] and bias of predicted over measured."""
    error = 100 * np.abs(ratio - 1)
    return [f"{error.mean():.1f}", f"{np.median(error):.1f}", f"{np.exp(np.mean(np.log(ratio))):.2f}"]


def report_h200(values: dict[str, float]) -> BoardPower:
    """Write the README's errors on an H200's families left out, by operator and regime, baselines, own time, and of the
    limit's law."""
    rows, pairs = power_rows(), pair_rows()
    model, kinds, op = prior_model().with_values(arrays(values)), masks(rows), rows.table.op.to_numpy()
    watts = watts_of(model, rows)
    lines = [line(f"model, {kind}", scores(rows, watts, keep)) for kind, keep in kinds.items()]
    within = " to ".join(f"{x:.1f}" for x in interval(rows, watts, kinds["held out"]))
    lines.append(["95 % of the held-out mean, by families", "", within, "", ""])
    others = {"priors alone": watts_of(prior_model(), rows)} | baselines(rows)
    others |= {"boosted trees on shapes": gradient_boosting(rows), "model at its own time": watts_of(model, rows, True)}
    lines += [line(f"{name}, held out", scores(rows, other, kinds["held out"])) for name, other in others.items()]
    capped = rows.table.power_w.to_numpy() > 670
    apart = {f"{name}, held out": op == name for name in np.unique(op)} | {"not at the limit, held out": ~capped}
    masked = {name: kinds["held out"] & mask for name, mask in apart.items()}
    lines += [line(name, scores(rows, watts, mask)) for name, mask in masked.items() if mask.any()]
    constant = scores(rows, others["constant"], kinds["held out"] & ~capped)
    lines.append(line("constant, not at the limit, held out", constant))
    us = rows.table.latency_us.to_numpy()
    for low, high in ((0, 10), (10, 50), (50, 200), (200, 500), (500, 2000), (2000, 1e9)):
        span = f"{low} to {high:g} us" if high < 1e9 else f"from {low} us"
        lines.append(line(span, scores(rows, watts, (us >= low) & (us < high))))
    write_table(README, "h200", markdown(SCORES, lines))
    out, at_limit = pairs.table.held_out.to_numpy(), pairs.table.power_w.to_numpy() > 670
    laws, lines = slowdowns(model, pairs), []
    for name, law in laws.items():
        if name == "measured":
            continue
        error = 100 * np.abs(law / laws["measured"] - 1)
        cells = [error[at_limit & out], error[at_limit & ~out], error[out], error[~out]]
        lines.append([name, *(f"{c.mean():.1f} ({len(c)})" for c in cells)])
    header = ["law", "at the limit, left out", "at the limit, training", "all, left out", "all, training"]
    write_table(README, "limit", markdown(header, lines))
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
