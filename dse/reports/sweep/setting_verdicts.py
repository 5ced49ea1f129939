"""What base GPUs and settings of workloads are worth, in words: of each value the best design that has it."""

import pandas as pd

from dse.grid.result import SweepResult
from dse.reports.common.words import axis_value, joined, label, number, quantity, superlative, unit_text
from dse.reports.sweep.data import costs
from dse.space.axis import Axis
from dse.space.setting_axes import BASE
from dse.space.space import Objective, Space

MOST = 8
"""Values of an axis that a sentence lists, the best first."""


def setting_sentences(result: SweepResult) -> list[str]:
    """Return a sentence for each axis of base GPUs or settings: each objective's best at each value, and values that no
    design can be had with; nothing of a plain space."""
    axes = result.space.variants.axes if result.space.variants else ()
    return [_of_axis(result, axis) for axis in axes if len(axis) > 1 and not result.front.empty]


def setting_headline(result: SweepResult) -> list[str]:
    """Return which values the best design of the first objective has; nothing of a plain space."""
    if result.space.variants is None or result.front.empty:
        return []
    first = result.space.objectives[0]
    row = result.front.iloc[int(costs(result.front, [first])[:, 0].argmin())]
    values = [f"{axis.name} {axis_value(row[axis.name])}" for axis in result.space.variants.axes]
    return [f"{superlative(first).capitalize()}: {joined(values)} ({quantity(float(row[first.name]), first.unit)})."]


def _of_axis(result: SweepResult, axis: Axis) -> str:
    """The sentence of one axis."""
    effects = result.axis_effects[result.axis_effects["axis"] == axis.name]
    parts = [_of_objective(effects, objective) for objective in result.space.objectives]
    lost = effects.groupby("number")["best"].count() == 0
    values = [axis_value(v) for n, v in zip(axis.numbers, axis.values, strict=True) if lost[n]]
    seen = "can be had" if result.n == result.space.size else "was seen on the front"
    without = f". No design {seen} with {joined(values, 'or')}" if values else ""
    unit = f" [{unit_text(axis.unit)}]" if unit_text(axis.unit) else ""
    return f"{axis.name}{unit}: {'; '.join(filter(None, parts))}{without}."


def _of_objective(effects: pd.DataFrame, objective: Objective) -> str:
    """An objective's best at each value of an axis, the best first."""
    rows = effects[(effects["objective"] == objective.name) & effects["best"].notna()]
    rows = rows.sort_values("best", ascending=objective.sign > 0, kind="stable").iloc[:MOST]
    listed = [f"{axis_value(row['value'])} {number(row['best'])}" for _, row in rows.iterrows()]
    unit = f" [{unit_text(objective.unit)}]" if objective.unit else ""
    return f"best {label(objective)}{unit} of {', '.join(listed)}" if listed else ""


def variant_note(space: Space) -> list[str]:
    """Return which variant the baseline is, and what is told of it alone; nothing of a plain space."""
    if space.variants is None:
        return []
    numbers = space.variants.numbers(space.variants.home)
    settings = [f"{a.name} = {a.attribute.decode(numbers[a.name])}" for a in space.variants.axes if a.name != BASE]
    home = joined([space.base.title, *settings])
    return [
        f"The baseline is {home}; verdicts of other axes are told around it alone, base. in an expression is each "
        "design's own base GPU, and assumed numbers are not varied."
    ]
