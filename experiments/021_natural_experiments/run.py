"""Natural experiments: real GPUs that differ in few attributes, predicted ratios of times against measured ones.

Run with ``python experiments/021_natural_experiments/run.py [--quick] [--kinds KIND ...] [--ablation] [-o FOLDER]``
(twenty minutes on two cores). Each pair is predicted by fits that have seen neither member. Writes its table into the
README beside this file, and the rows behind it into FOLDER where asked; ``--quick`` takes fewer rows and pairs and
writes nothing; ``--kinds`` makes some kinds anew and keeps the others' lines; ``--ablation`` puts each change of the
equations back, on few rows, and writes that table alone, which takes ``--kinds``, too.
"""

import argparse
import sys
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import predictions as of_pairs  # noqa: E402
from ablation import CHANGES, ablation, coefficients  # noqa: E402
from matched import LEAST_ROWS, OPERATORS, Pair, matched, pairs, preset, short  # noqa: E402
from scores import score, tau_b  # noqa: E402

from dse.measured.timed_rows import best  # noqa: E402

PREDICTORS = {"ours": "ours", "sheet": "data sheet", "pooled": "roofline of three numbers", "peak": "ratio of peaks"}
"""Column -> who predicts."""

SET = ("A100-SXM4-80GB", "H100-SXM5-80GB", "H200-SXM-141GB", "L40S")
"""GPUs whose order is predicted, each by a fit without it."""

SET_TABLES = ("aiconfigurator__gemm", "aiconfigurator__gemm_released")

KINDS = tuple(OPERATORS)
"""Kinds of pairs, in the order of the table."""

WHOLE, QUICK = ("", 300, 300), ("products", 120, 120)
"""Kind of pairs, matched rows and fitted rows of a device, of a whole run and of a quick one."""

SCORES = ("scores.csv", "few_rows.csv")
"""Files beside this one: the scores of pairs, and of those with fewer than LEAST_ROWS rows, which count nowhere."""

ORDER = "Order of"
"""How the line of the order of SET begins."""

BEGIN, END = "<!-- written by run.py -->", "<!-- end -->"
BEGIN_CHANGES, END_CHANGES = "<!-- written by run.py --ablation -->", "<!-- end of changes -->"


def _places(kinds: pd.Series) -> pd.Series:
    """Where each kind stands in the table."""
    return kinds.map(KINDS.index)


def ratios(fits: of_pairs.Fits, pair: Pair, most: int) -> pd.DataFrame:
    """Return a pair's measured ratio and that of each predictor, a row a shape, with the times behind them [us]."""
    frames = matched(pair, most)
    with of_pairs.types_never_fitted() if pair.kind == "data types" else nullcontext():
        sides = (of_pairs.timed(frames[0]), of_pairs.timed(frames[1]))
    if pair.kind == "products":
        told = of_pairs.products(fits, pair.presets, sides)
    elif pair.kind == "data types":
        told = of_pairs.data_types(sides)
    elif pair.kind == "attention":
        told = of_pairs.attention(fits, pair.presets, sides)
    else:
        told = of_pairs.vector_kernels(pair.tables, sides)
    columns = []
    for side, frame, word in zip(told, frames, ("one", "other"), strict=True):
        measured = frame["latency_us"].to_numpy()[side.place]
        times = {"measured": measured} | {name: getattr(side, name) for name in PREDICTORS}
        columns.append(pd.DataFrame(times, index=side.place).add_prefix(f"{word}_"))
    table = pd.concat(columns, axis=1, join="inner").dropna()
    for name in ("measured", *PREDICTORS):
        table[name] = table[f"one_{name}"] / table[f"other_{name}"]
    shape = frames[0].loc[table.index, [c for c in ("op", "m", "n", "k", "batch", "rows", "cols") if c in frames[0]]]
    if len(table) < len(frames[0]):
        print(f"{pair.name}: {len(frames[0]) - len(table)} of {len(frames[0])} rows without a prediction left out")
    return pd.concat([shape, table], axis=1).assign(pair=pair.name, kind=pair.kind)


def line(pair: Pair, table: pd.DataFrame) -> dict[str, object]:
    """Return a pair's scores."""
    measured = table["measured"].to_numpy()
    found = {name: score(table[name].to_numpy(), measured) for name in PREDICTORS}
    long = ((table["one_measured"] >= 50) & (table["other_measured"] >= 50)).to_numpy()
    longer = (
        {name: score(table[name].to_numpy()[long], measured[long]) for name in ("ours", "sheet")} if long.any() else {}
    )
    return {
        "kind": pair.kind,
        "pair": pair.name,
        "differs": pair.differs,
        "rows": len(table),
        "ours": found["ours"].log_error,
        "right": found["ours"].right_side,
        **{name: found[name].log_error for name in PREDICTORS if name != "ours"},
        "long": longer["ours"].log_error if longer else float("nan"),
        "long_sheet": longer["sheet"].log_error if longer else float("nan"),
    }


def order(fits: of_pairs.Fits, most: int) -> dict[str, float]:
    """Return the mean of Kendall's tau over shapes that every GPU of SET ran, ours and the data sheet's."""
    ran = [Pair("products", device, SET[0], "bf16", "", SET_TABLES, "") for device in SET]
    frames = [matched(pair, 10**6)[0].set_index(["m", "n", "k"]) for pair in ran]
    shapes = frames[0].index
    for frame in frames[1:]:
        shapes = shapes.intersection(frame.index)
    shapes = shapes[np.sort(np.random.default_rng(0).permutation(len(shapes))[:most])]
    times = {name: [] for name in ("measured", "ours", "sheet")}
    for device, frame in zip(SET, frames, strict=True):
        rows = of_pairs.timed(frame.loc[shapes].reset_index())
        assert len(rows.table) == len(shapes)
        model = fits.product_model(frozenset((preset(device),)))
        times["measured"].append(rows.table["latency_us"].to_numpy())
        times["ours"].append(best(model, rows)[0])
        times["sheet"].append(np.maximum(rows.table["compute_us"], rows.table["memory_us"]).to_numpy())
    arrays = {name: np.stack(columns, 1) for name, columns in times.items()}
    found = {name: float(np.nanmean(tau_b(arrays[name], arrays["measured"]))) for name in ("ours", "sheet")}
    return found | {"shapes": float(len(shapes))}


def margin(row: Mapping[Hashable, Any]) -> str:
    """Return by how much a pair's score is nearer than the better roofline's, marked where it is not."""
    nearer = min(row["sheet"], row["pooled"]) - row["ours"]
    return f"{nearer:.3f}" if nearer >= 0 else f"**not, by {-nearer:.3f}**"


def few_rows(lines: pd.DataFrame) -> str:
    """Return the sentence on pairs with too few rows, which count nowhere."""
    told = [f"{row['pair']} {row['ours']:.3f} on {row['rows']}" for row in lines.to_dict("records")]
    return f"With fewer than {LEAST_ROWS} rows a pair counts nowhere: {'; '.join(told)}."


def markdown(lines: pd.DataFrame, few: pd.DataFrame, ordered: str) -> str:
    """Return the table of the README, and the lines below it; ``few``: pairs with too few rows, ``ordered``: what it
    says of the order of SET."""
    head = (
        "pair",
        "differs",
        "rows",
        "**ours**",
        "right side, %",
        "data sheet",
        "three numbers",
        "peaks",
        "nearer than both rooflines by",
        "from 50 us",
        "sheet from 50 us",
    )
    text = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for kind, part in lines.groupby("kind", sort=False):
        for row in part.to_dict("records"):
            side = "" if np.isnan(row["right"]) else f"{100 * row['right']:.0f}"
            cells = [row["pair"], row["differs"], f"{row['rows']}", f"**{row['ours']:.3f}**", side]
            cells += [f"{row[name]:.3f}" for name in ("sheet", "pooled", "peak")]
            cells += [margin(row)] + ["" if np.isnan(x) else f"{x:.3f}" for x in (row["long"], row["long_sheet"])]
            text.append("| " + " | ".join(cells) + " |")
        mean = part[["ours", "right", "sheet", "pooled", "peak"]].mean()
        cells = [
            f"*{kind}, mean of pairs*",
            "",
            str(part["rows"].sum()),
            f"**{mean['ours']:.3f}**",
            f"{100 * mean['right']:.0f}",
        ]
        cells += [f"{mean[name]:.3f}" for name in ("sheet", "pooled", "peak")] + ["", "", ""]
        text.append("| " + " | ".join(cells) + " |")
    better = (lines["ours"] <= lines[["sheet", "pooled"]].min(axis=1)).sum()
    text += [
        "",
        f"Better than both rooflines on {better} of {len(lines)} pairs; mean of all pairs {lines['ours'].mean():.3f}.",
        *([few_rows(few)] if len(few) else []),
        ordered,
    ]
    return "\n".join(text)


def order_line(tau: dict[str, float]) -> str:
    """Return what the README says of the order of SET, from what :func:`order` found."""
    return (
        f"{ORDER} {', '.join(map(short, SET))} on {tau['shapes']:.0f} shapes, each predicted by a fit without it: "
        f"Kendall's tau-b {tau['ours']:.2f}, the data sheet's roofline {tau['sheet']:.2f}."
    )


def order_before() -> str:
    """Return what the README says of the order of SET."""
    lines = (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(ORDER))


def log_error(fits: of_pairs.Fits, pair: Pair) -> float | None:
    """Return our mean |log ratio error| of a pair on the rows of a quick run; None with fewer than LEAST_ROWS."""
    table = ratios(fits, pair, QUICK[1])
    return None if len(table) < LEAST_ROWS else score(table["ours"].to_numpy(), table["measured"].to_numpy()).log_error


def what_changes_buy(kinds: Sequence[str]) -> str:
    """Return the table of pairs with each change put back, and that of what set its coefficients; of some ``kinds``
    alone, the others' lines stay as ``changes.csv`` has them."""
    every = [pair for pair in pairs() if pair.kind == "products" or any(c.concerns(pair) for c in CHANGES)]
    some = [pair for pair in every if not kinds or pair.kind in kinds]
    table = ablation(some, of_pairs.Fits(WHOLE[2]), log_error)
    if kinds:
        before = pd.read_csv(HERE / "changes.csv", index_col="pair")
        table = pd.concat([before[~before.index.isin([pair.name for pair in some])], table])
        table = table.reindex([pair.name for pair in every if pair.name in table.index])
    names = ["as it is", *(change.name for change in CHANGES)]
    table = table.reindex(columns=names)
    table.round(4).to_csv(HERE / "changes.csv", index_label="pair")
    text = ["| pair | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for name, row in table.iterrows():
        text.append(f"| {name} | " + " | ".join("" if np.isnan(row[n]) else f"{row[n]:.3f}" for n in names) + " |")
    means = [(table[n].mean(), table["as it is"][table[n].notna()].mean()) for n in names]
    cells = [f"{means[0][0]:.3f}", *(f"{back:.3f} ({now:.3f})" for back, now in means[1:])]
    text += [f"| *mean (of the same pairs as it is)* | {' | '.join(cells)} |", ""]
    text += ["| coefficient | value | set by |", "|---|---|---|"]
    text += [f"| `{c}` | {value:g} | {words} |" for c, value, words in coefficients().itertuples(index=False)]
    return "\n".join(text)


def write(text: str, begin: str, end: str) -> None:
    """Put a table between two marks of the README."""
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    before, after = readme.split(begin)[0], readme.split(end)[1]
    (HERE / "README.md").write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few rows, products only; nothing is written")
    parser.add_argument("-o", "--out", type=Path, help="folder for the rows behind the table")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="kinds of pairs; the others' lines stay")
    parser.add_argument("--ablation", action="store_true", help="each change put back, on few rows")
    arguments = parser.parse_args()
    if arguments.ablation:
        write(what_changes_buy(arguments.kinds or ()), BEGIN_CHANGES, END_CHANGES)
    else:
        whole(arguments.quick, arguments.kinds or (), arguments.out)


def whole(quick: bool, kinds: Sequence[str], out: Path | None) -> None:
    """Predict and score all pairs, or those of a ``quick`` run, print, and write; of some ``kinds`` alone, the others'
    lines stay as they were."""
    kind, most, fitted = QUICK if quick else WHOLE
    fits, lines, tables = of_pairs.Fits(fitted), [], []
    for pair in pairs():
        if kind not in ("", pair.kind) or (kinds and pair.kind not in kinds):
            continue
        table = ratios(fits, pair, most)
        lines.append(line(pair, table))
        tables.append(table)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in lines[-1].items()}, flush=True)
    every = pd.DataFrame(lines).round(4)
    if kinds:
        before = pd.concat([pd.read_csv(HERE / name) for name in SCORES])
        every = pd.concat([before[~before["kind"].isin(kinds)], every]).sort_values("kind", key=_places, kind="stable")
    scored, few = every[every["rows"] >= LEAST_ROWS], every[every["rows"] < LEAST_ROWS]
    ordered = order_line(order(fits, most)) if not kinds or "products" in kinds else order_before()
    text = markdown(scored, few, ordered)
    print(text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        pd.concat(tables, ignore_index=True).to_parquet(out / "ratios.parquet", index=False)
    if not quick:
        for name, some in zip(SCORES, (scored, few), strict=True):
            some.to_csv(HERE / name, index=False)
        write(text, BEGIN, END)


if __name__ == "__main__":
    main()
