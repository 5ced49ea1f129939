"""The data of a page of ``dse validate``: points, errors over shapes, the groups, the rows that are farthest off."""

import numpy as np
import pandas as pd

from dse.measured.compound.compressed import COMPRESSED_MODULES
from dse.measured.compound.experts import MIXTURE
from dse.measured.compound.latent import MODULES
from dse.measured.compound.sparse_latent import SPARSE_MODULES
from dse.measured.coverage import SHAPES
from dse.measured.network_runs.kinds import FORWARD, RUNS
from dse.measured.row_shape import ALL_REDUCE, ATTENTION, ENCODER, LATENT, PRODUCTS
from dse.measured.throttling import HELD
from dse.timing.timing import PHASE_CAUSES
from dse.validation.time import TimeValidation
from dse.validation.worst_rows import OVERHEAD, QUANTISING

MOST_POINTS = 3000
"""Points that a scatter shows: more only blacken it and slow the page."""

FEWEST, MOST_BINS = 8, 12
"""Rows of a bin at least, and bins of a shape's number at most."""

FEWEST_BINNED = 2 * FEWEST
"""Rows of a series that are put into bins; of fewer each stands for itself."""

MEANINGS = PHASE_CAUSES | {
    OVERHEAD: "the way of measuring a kernel: its launch path",
    HELD: "the clock falls in the board's power limit",
    QUANTISING: "kernels of their own that quantise the activations",
}
"""Part of a predicted time -> what it is."""

FAMILIES = {
    "Whole networks": RUNS,
    "Matrix products": (*PRODUCTS,),
    "Attention": (*ATTENTION, ENCODER, *LATENT),
    "All-reduces": (ALL_REDUCE,),
}
"""Heading -> operators whose shapes have the same numbers; all others are vector kernels."""

VECTOR_KERNELS = "Vector kernels"


def points(validation: TimeValidation, most: int = MOST_POINTS) -> pd.DataFrame:
    """Return at most about ``most`` measured and predicted times, evenly over measured time in each device and kind.

    Columns: device, kind (operator and data type), measured_us, predicted_us, ratio, shape (words).
    """
    rows = _rows(validation)
    share = min(1.0, most / len(rows))
    parts = []
    for _, part in rows.groupby(["device", "kind"], sort=True):
        part = part.sort_values("measured_us", kind="stable")
        count = max(1, round(share * len(part)))
        parts.append(part.iloc[np.unique(np.linspace(0, len(part) - 1, count).round().astype(int))])
    drawn_rows = pd.concat(parts, ignore_index=True)
    shapes = [shape_text(row, str(row["op"])) for row in drawn_rows.to_dict("records")]
    return drawn_rows[["device", "kind", "measured_us", "predicted_us", "ratio"]].assign(shape=shapes)


def shape_errors(validation: TimeValidation) -> dict[str, pd.DataFrame]:
    """Return errors over each number of a shape, by family of operators.

    A row is a ``series`` (device and data type), column and bin: ``value`` (the bin's median), ``n``, and the 10, 50
    and 90 % quantiles of predicted / measured (``low``, ``middle``, ``high``). Of a series with less than
    FEWEST_BINNED rows it is a measured row.
    """
    rows, tables = _rows(validation), {}
    for family, part in rows.groupby(rows["op"].map(_family), sort=False):
        columns = SHAPES[str(part["op"].iloc[0])]
        bins = [
            {"series": str(name), "column": column} | one
            for column in columns
            if part[column].nunique() > 1
            for name, of_series in part.groupby(part["device"].astype(str) + " " + part["dtype"].astype(str), sort=True)
            for one in _bins(of_series[column].to_numpy(float), of_series["ratio"].to_numpy())
        ]
        if bins:
            tables[str(family)] = pd.DataFrame(bins)
    return {name: tables[name] for name in (*FAMILIES, VECTOR_KERNELS) if name in tables}


def worst_stacks(validation: TimeValidation) -> pd.DataFrame:
    """Return the stacks of the rows that are farthest off: a row a part of a stack, with ``place`` (0 is the farthest),
    ``name``, ``part``, ``us``, ``share`` (of the longer of predicted and measured time), measured_us, predicted_us and
    ratio."""
    cells = []
    for place, row in enumerate(validation.document["worst"]):
        longer = max(row["measured_us"], row["predicted_us"])
        name = f"{row['device']}, {row['op']} {row['dtype']}"
        labels = {"place": place, "name": name, "shape": worst_shape(row), "kernel": row["kernel"]}
        labels |= {key: row[key] for key in ("measured_us", "predicted_us", "ratio")}
        cells += [labels | {"part": p, "us": us, "share": us / longer} for p, us in row["stack_us"].items() if us > 0]
    return pd.DataFrame(cells)


def whole_groups(validation: TimeValidation) -> pd.DataFrame:
    """Return the groups over all regimes, for the head of the page."""
    groups = pd.DataFrame(validation.document["groups"])
    return groups[groups["regime"] == "all"].reset_index(drop=True)


def overall(validation: TimeValidation) -> dict[str, float]:
    """Return the errors over all rows [%], those of both rooflines (``three`` may be NaN), and the geometric bias."""
    rows = validation.rows
    measured = rows["latency_us"].to_numpy()
    off = {c: 100 * np.abs(rows[c].to_numpy() / measured - 1) for c in ("predicted_us", "sheet_us", "three_us")}
    bias = float(np.exp(np.log(rows["predicted_us"].to_numpy() / measured).mean()))
    return {
        "mean": float(off["predicted_us"].mean()),
        "median": float(np.median(off["predicted_us"])),
        "sheet": float(off["sheet_us"].mean()),
        "three": _mean(off["three_us"]),
        "bias": bias,
    }


def _mean(values: np.ndarray) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def shape_text(row: dict, op: str) -> str:
    """Return a row's shape in words."""
    if op == FORWARD:
        return f"{row['group']}, batch {row['batch']:g}, {row['seq_q']:,.0f} tokens"
    if op in RUNS:
        gpus = f", {row['tp']:g} GPUs" if row["tp"] > 1 else ""
        return (
            f"{row['group']}, batch {row['batch']:g}, {row['seq_q']:,.0f} prompt and {row['seq_kv']:,.0f} output "
            f"tokens{gpus}"
        )
    if op in PRODUCTS:
        many = f"{row['batch']:.10g} of " if op == "bmm" and row["batch"] > 1 else ""
        return many + " × ".join(f"{row[c]:.10g}" for c in SHAPES[op])
    if op in (*ATTENTION, ENCODER, *LATENT, *MODULES):
        return (
            f"batch {row['batch']:g}, {row['heads']:g}/{row['kv_heads']:g} heads of {row['head_dim']:g}, "
            f"{row['seq_q']:,.0f} × {row['seq_kv']:,.0f}"
        )
    if op in (*SPARSE_MODULES, *COMPRESSED_MODULES):
        return f"batch {row['batch']:g}, {row['heads']:g} heads, {row['seq_q']:,.0f} × {row['seq_kv']:,.0f}"
    if op == MIXTURE:
        return f"{row['tokens']:,.0f} tokens to {row['topk']:g} of {row['experts']:g} experts of {row['inter']:,.0f}"
    over = f" over {row['tp']:g} GPUs" if op == ALL_REDUCE else ""
    return f"{row['rows']:.10g} × {row['cols']:.10g}{over}"


def worst_shape(row: dict) -> str:
    """Return the shape of one of the rows that are farthest off in words, with its name in a layer if it has one."""
    named = f"{row['layer']}, " if "layer" in row else ""
    return named + shape_text(row, row["op"])


def _rows(validation: TimeValidation) -> pd.DataFrame:
    rows = validation.rows.rename(columns={"latency_us": "measured_us"})
    kind = rows["op"].astype(str) + " " + rows["dtype"].astype(str)
    return rows.assign(ratio=rows["predicted_us"] / rows["measured_us"], kind=kind)


def _family(op: str) -> str:
    return next((name for name, ops in FAMILIES.items() if op in ops), VECTOR_KERNELS)


def _bins(values: np.ndarray, ratio: np.ndarray) -> list[dict[str, float]]:
    """Return the quantiles of the ratio in bins of equally many rows; equal values share a bin."""
    order = np.argsort(values, kind="stable")
    values, ratio = values[order], ratio[order]
    if len(values) < FEWEST_BINNED:
        return [
            {"value": float(value), "n": 1} | dict.fromkeys(("low", "middle", "high"), float(one))
            for value, one in zip(values, ratio, strict=True)
        ]
    count = max(1, min(MOST_BINS, len(values) // FEWEST))
    ends = np.searchsorted(values, np.quantile(values, np.linspace(0, 1, count + 1)[1:]), side="right")
    bins, start = [], 0
    for end in np.unique(ends):
        if end - start >= FEWEST:
            low, middle, high = np.quantile(ratio[start:end], (0.1, 0.5, 0.9))
            bins.append(
                {
                    "value": float(np.median(values[start:end])),
                    "n": int(end - start),
                    "low": float(low),
                    "middle": float(middle),
                    "high": float(high),
                }
            )
            start = end
    return bins
