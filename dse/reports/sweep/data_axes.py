"""The data of a sweep's axes: the effect of each, and where on each the Pareto set lies."""

import numpy as np
import pandas as pd

from dse.grid.result import SweepResult
from dse.reports.common.words import axis_value, unit_text
from dse.reports.sweep.data import varied_axes
from dse.space.axis import Axis

FIGURES = ("at_baseline", "paired", "best", "median")
"""Columns of an objective at a value of an axis."""

PILED = 0.5
"""A Pareto set with more than this share on an end of an axis may go on beyond it."""


def axis_effect(result: SweepResult) -> pd.DataFrame:
    """Return the effect of each varied axis, a row an axis value and objective, by ascending value.

    ``at_baseline``: only that axis moved from the base GPU; ``best`` and ``median`` over all feasible designs with that
    value; ``paired``: see :func:`dse.reports.search.data.evaluated_effects`; each in the objective's unit, empty
    where there is none. ``at``: the axis value as text.
    """
    frame = result.axis_effects[result.axis_effects["axis"].isin([a.name for a in varied_axes(result)])].copy()
    for column in FIGURES:
        column_values = frame[column] if column in frame else pd.Series(np.nan, frame.index)
        frame[column] = pd.to_numeric(column_values, errors="coerce")
    frame["at"] = [axis_value(value) for value in frame["value"]]
    order = {axis.name: i for i, axis in enumerate(result.space.axes)}
    return frame.sort_values(["axis", "number"], key=lambda c: c.map(order) if c.name == "axis" else c, kind="stable")


def front_places(result: SweepResult) -> pd.DataFrame:
    """Return where on each varied axis the Pareto set sits, a row an axis value from low to high.

    ``axis``, ``number``, ``at`` (the value as text), ``designs`` of the front with it, their ``share`` of it (0 to 1).
    A refined design that lies between two values counts at the nearer one.
    """
    rows = []
    for axis in varied_axes(result):
        counts = pd.Series([_nearest(axis, value) for value in result.front[axis.name]], dtype=str).value_counts()
        for place in ascending(axis):
            text = axis_value(axis.values[place])
            count = int(counts.get(text, 0))
            rows.append((axis.name, axis.numbers[place], text, count, count / max(len(result.front), 1)))
    return pd.DataFrame(rows, columns=["axis", "number", "at", "designs", "share"])


def _nearest(axis: Axis, value: object) -> str:
    """The axis value, as text, that a design's value is or lies nearest to."""
    if is_words(axis):
        return axis_value(value)
    return axis_value(axis.values[int(np.argmin(np.abs(np.asarray(axis.numbers, float) - float(value))))])  # pyright: ignore[reportArgumentType]


def piled_up(result: SweepResult) -> list[str]:
    """Return a sentence for every axis of numbers at whose end more than PILED of the Pareto set sits."""
    places, notes = front_places(result), []
    for axis in varied_axes(result):
        if is_words(axis) or result.front.empty:
            continue
        part = places[places["axis"] == axis.name]
        for end, word in ((part.iloc[0], "lowest"), (part.iloc[-1], "highest")):
            if end["share"] > PILED:
                value = f"{end['at']} {unit_text(axis.unit)}".rstrip()
                notes.append(f"{100 * end['share']:.0f} % of the Pareto set has the {word} {axis.name} ({value})")
    return notes


def ascending(axis: Axis) -> np.ndarray:
    """Return the order of an axis's values from low to high; words keep theirs."""
    return np.arange(len(axis)) if is_words(axis) else np.argsort(axis.numbers, kind="stable")


def is_words(axis: Axis) -> bool:
    """Whether an axis takes words (choices, yes and no) instead of numbers."""
    return bool(axis.attribute.choices) or axis.attribute.type == "bool"
