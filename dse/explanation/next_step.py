"""Which attribute of a GPU, moved alone, helps a workload most: the steps of a sensitivity study, sorted by that."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dse.explanation.sensitivity_table import SMALLEST, changes_text

ENERGY = "energy_j"


class Sides(NamedTuple):
    """The steps that change something, in two lists of texts, most first."""

    faster: list[str]
    others: list[str]  # slower, or a change of the energy alone


def gains(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of each time that shorten it, with ``gain``: what as large a step as the others' would save.

    Steps differ in size where only whole numbers are legal: ``gain`` is ln(before / after the step) of the time over
    ln(after / before) of the attribute, in size. Sorted by it, the largest first.
    """
    faster = steps[(steps["metric"] != ENERGY) & (steps["change"] <= -SMALLEST)]
    size = np.abs(np.log((faster["after"] / faster["before"]).to_numpy(dtype=float)))
    gain = -np.log1p(faster["change"].to_numpy(dtype=float)) / size
    return faster.assign(gain=gain).sort_values("gain", ascending=False, kind="stable")


def next_steps(steps: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the best step of each time that any step shortens: metric, attribute, text, change of every metric [1]."""
    best = gains(steps).drop_duplicates("metric")
    order = {metric: place for place, metric in enumerate(steps["metric"].unique())}
    rows = sorted(best.to_dict("records"), key=lambda row: order[row["metric"]])
    return [{key: row[key] for key in ("metric", "attribute", "text")} | _changes(steps, row) for row in rows]


def _changes(steps: pd.DataFrame, row: dict[Any, Any]) -> dict[str, Any]:
    same = steps[steps["attribute"] == row["attribute"]]
    return {"changes": {str(metric): float(x) for metric, x in zip(same["metric"], same["change"], strict=True)}}


def next_sentence(steps: pd.DataFrame) -> str:
    """Return the step to take next, in words, for each time that one shortens."""
    told: dict[str, str] = {}
    for step in next_steps(steps):
        rows = steps[steps["attribute"] == step["attribute"]]
        told[step["attribute"]] = f"{step['text']} ({changes_text(rows[rows['change'].abs() >= SMALLEST])})"
    if not told:
        return "No attribute moved alone makes it faster."
    return f"What helps most, moved alone: {'; '.join(told.values())}."


def sides(steps: pd.DataFrame) -> Sides:
    """Return the steps that help a time more than they hurt another, and all others that change something."""
    best = gains(steps).groupby("attribute", sort=False)["gain"].max()
    faster, others = {}, []
    for name, rows in steps.groupby("attribute", sort=False):
        changes = rows["change"].to_numpy(dtype=float)
        if (np.abs(changes) < SMALLEST).all():
            continue
        times = rows.loc[rows["metric"] != ENERGY, "change"]
        if name in best and -times.min() > times.max():
            faster[name] = short_sentence(rows)
        else:
            others.append(short_sentence(rows))
    return Sides([faster[name] for name in best.index if name in faster], others)


def short_sentence(rows: pd.DataFrame) -> str:
    """Return what one step changes, of every metric that it changes."""
    return f"{rows['text'].iloc[0]}: {changes_text(rows[rows['change'].abs() >= SMALLEST])}"
