"""What the page's explorer draws: the Pareto set and a sample of the other designs, column by column."""

import base64
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dse.base.pareto_filter import pareto_mask
from dse.evaluate.metric_error import MetricError, objective_error
from dse.grid.result import SweepResult
from dse.reports.common.ticks import axis_range
from dse.reports.common.words import axis_value, gpu_name, label, short_value, short_values, unit_text
from dse.reports.sweep.data import (
    chosen_designs,
    costs,
    evenly,
    measured_baseline,
    shown_text,
    thinned,
    varied_axes,
)
from dse.reports.sweep.data_axes import ascending, is_words
from dse.reports.sweep.data_infeasible import infeasible_designs
from dse.reports.sweep.design_toml import design_files
from dse.space.axis import Axis
from dse.space.space import Objective

CLOUD = 20_000
"""Feasible designs drawn behind the front, all plots together: what a browser draws in a second without WebGL."""

FRONT_DOTS = 4_000
"""Designs of a front drawn, where its edges alone are not more."""

MOST_PLOTS = 2
"""Plots side by side."""


def explorer(result: SweepResult, table: list[int]) -> dict[str, Any]:
    """Return the explorer's data as JSON values; columns of numbers are base64 of little-endian arrays.

    ``table``: front positions that must be among those drawn (rows of the table of the front).
    """
    shown = shown_front(result, table)
    plots = starting_plots(result)
    cloud, refused = thinned(others(result), CLOUD // max(len(plots), 1)), infeasible_designs(result)
    front, base = result.front.iloc[shown], measured_baseline(result)
    files = design_files(result.space, front)
    axes = varied_axes(result)
    on_scale = (cloud, front, base, refused) if len(axes) == 1 else (cloud, front, base)  # a line is shown whole
    everything = pd.concat([frame for frame in on_scale if len(frame)])
    place = {position: i for i, position in enumerate(shown)}
    chosen = chosen_designs(result)
    return {
        "baseline": gpu_name(result.space) if len(base) else None,
        "objectives": [
            _objective(o, objective_error(result.space, o), everything, cloud, front, base, refused)
            for o in result.space.objectives
        ],
        "axes": [_axis(axis, cloud, front, base, refused) for axis in axes],
        "plots": plots,
        "colour": starting_colour(result),
        "infeasible_text": _refused_text(result, refused),
        "reasons": _reasons(refused),
        "cloud_text": shown_text(len(cloud), result.n_feasible - len(result.front) + result.n_off_grid),
        "front_text": shown_text(len(front), len(result.front)),
        "number": packed(np.asarray(shown) + 1, "<u4"),
        "chosen": [
            {"letter": row["letter"], "name": row["design"], "front": place[row["position"]]}
            for _, row in chosen[chosen["position"] >= 0].iterrows()
        ],
        "files": {
            "head": files.head,
            "lines": [
                {"name": name, "literals": files.literals[name], "codes": packed(files.codes[name], "<u4")}
                for name in files.names
            ],
        },
    }


def _refused_text(result: SweepResult, refused: pd.DataFrame) -> str:
    """How many of the designs that cannot be had are drawn; nothing where none is."""
    return shown_text(len(refused), result.n - result.n_feasible) if len(refused) else ""


def _reasons(refused: pd.DataFrame) -> dict[str, Any]:
    """The reasons of designs that cannot be had, and which of them each has."""
    codes, texts = pd.factorize(refused["reason"].astype(object))
    return {"texts": [str(text) for text in texts], "codes": packed(codes, "<u4")}


def others(result: SweepResult) -> pd.DataFrame:
    """Return the sampled designs that are neither on the front nor the baseline: those are points of their own."""
    names = [axis.name for axis in result.space.axes]
    marked = pd.concat([result.front[names].astype(object), result.baseline[names].astype(object)])
    sampled = pd.MultiIndex.from_frame(result.sample[names].astype(object))
    return result.sample[~sampled.isin(pd.MultiIndex.from_frame(marked))]


def shown_front(result: SweepResult, always: list[int]) -> list[int]:
    """Return the front's positions that are drawn: the edge of every pair of objectives, ``always``, and a thinning."""
    positions = set(evenly(len(result.front), FRONT_DOTS)) | set(always)
    positions |= set(chosen_designs(result).query("position >= 0")["position"].tolist())
    for pair in combinations(result.space.objectives, 2):
        positions |= set(np.flatnonzero(edge(result.front, *pair)).tolist())
    return sorted(positions)


def edge(front: pd.DataFrame, x: Objective, y: Objective) -> np.ndarray:
    """Return which designs of a front no other one betters in two objectives alone; of equal ones the first."""
    best = pareto_mask(costs(front, [x, y]))
    return best & ~front[[x.name, y.name]].duplicated().to_numpy()


def starting_plots(result: SweepResult) -> list[list[int]]:
    """Return the quantities [x, y] of each plot at first: the last objective across, the first and the second upwards.

    Quantities are numbered objectives first, then axes. Where one axis alone varies, it lies across.
    """
    count = len(result.space.objectives)
    if len(varied_axes(result)) == 1:
        return [[count, number] for number in range(count)][:MOST_PLOTS]
    pairs = [[count - 1, 0], [count - 1, 1]] if count > 2 else [[1, 0]]
    return pairs[:MOST_PLOTS]


def starting_colour(result: SweepResult) -> int | None:
    """Return the objective that colours designs at first: one that lies on no axis, else the one on a single plot."""
    count = len(result.space.objectives)
    return {2: None, 3: 1}.get(count, 2)


def _objective(
    o: Objective,
    error: MetricError,
    everything: pd.DataFrame,
    cloud: pd.DataFrame,
    front: pd.DataFrame,
    base: pd.DataFrame,
    refused: pd.DataFrame,
) -> dict[str, Any]:
    return {
        "name": o.name,
        "label": label(o),
        "unit": unit_text(o.unit),
        "trust": error.word,
        "interval": [error.error_interval.low, error.error_interval.high] if error.error_interval else None,
        "sign": o.sign,
        "scale": axis_range(everything[o.name].to_numpy(dtype=float)),
        "front": packed(front[o.name], "<f4"),
        "cloud": packed(cloud[o.name], "<f4"),
        "infeasible": packed(refused[o.name], "<f4"),
        "baseline": float(base[o.name].iloc[0]) if len(base) else None,
    }


def _axis(
    axis: Axis, cloud: pd.DataFrame, front: pd.DataFrame, base: pd.DataFrame, refused: pd.DataFrame
) -> dict[str, Any]:
    """An axis: its values from low to high, as text, and which of them each design has; ``ticks``: those it states.

    A refined front stands between the values that the axis states.
    """
    number = {axis_value(axis.values[i]): float(axis.numbers[i]) for i in ascending(axis)}
    stated = set(number)
    if not is_words(axis):
        number |= {axis_value(v): float(v) for v in front[axis.name] if axis_value(v) not in stated}
    texts = sorted(number, key=lambda text: number[text]) if len(number) > len(stated) else list(number)
    code = {text: i for i, text in enumerate(texts)}
    here = axis_value(base[axis.name].iloc[0]) if len(base) else None
    numbers = [number[text] for text in texts]
    whole = [*numbers, *([] if here is None or is_words(axis) else [float(base[axis.name].iloc[0])])]
    return {
        "name": axis.name,
        "unit": unit_text(axis.unit),
        "texts": texts if is_words(axis) else short_values(numbers),
        "ticks": [i for i, text in enumerate(texts) if text in stated],
        "scale": None if is_words(axis) else axis_range(np.asarray(whole)) | {"numbers": numbers},
        "front": packed([code[axis_value(v)] for v in front[axis.name]], "<u4"),
        "cloud": packed([code[axis_value(v)] for v in cloud[axis.name]], "<u4"),
        "infeasible": packed([code[axis_value(v)] for v in refused[axis.name]], "<u4"),
        "baseline": None if here is None else _here(axis, here, whole[-1]),
    }


def _here(axis: Axis, text: str, number: float) -> dict[str, Any]:
    """The baseline's place on an axis."""
    return {"text": text, "number": None} if is_words(axis) else {"text": short_value(number), "number": number}


def packed(values: Any, kind: str) -> str:
    """Return numbers as base64 of an array of ``kind`` ("<f4", "<u4")."""
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode("ascii")
