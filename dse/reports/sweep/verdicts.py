"""Verdicts of axes in words: what more of each is worth, what binds beyond, what cuts it; as sentences and as JSON."""

from typing import Any

import pandas as pd

from dse.base.errors import expect
from dse.explanation.attribute_words import words
from dse.explanation.axis_verdicts import ALWAYS, GAIN, UNTIL, AxisCut, AxisVerdict, AxisVerdicts, scanned_axes
from dse.explanation.cause_words import cause_text
from dse.grid.result import SweepResult
from dse.reports.common.words import (
    axis_value,
    capital,
    joined,
    label,
    number,
    quantity,
    short_value,
    superlative,
    unit_text,
)
from dse.reports.sweep.data import costs
from dse.space.axis import Axis
from dse.space.setting_axes import BASE
from dse.space.space import Objective, Space

NEAR = 0.005
"""A value that differs by less from the base GPU's is the base's [1]."""

MOST_VALUES = 8
"""Values of an axis that a sentence lists, the best first."""

METHOD = (
    "Each axis moves alone from the base GPU in steps of 5 %; more pays up to the value beyond which no step gains "
    "1 %. What binds on other designs is another matter: the front moves all axes together."
)


def verdict_sentences(verdicts: AxisVerdicts | None) -> list[str]:
    """Return a paragraph for each axis: where more of it pays, what binds beyond, which constraint cuts from where.

    ``verdicts`` are those of :func:`dse.axis_verdicts`; None has no paragraph.
    """
    expect("verdicts", verdicts, AxisVerdicts | None, "give what dse.axis_verdicts returns")
    if verdicts is None:
        return []
    return [*_base_itself(verdicts), *(_of_axis(verdicts, axis) for axis in scanned_axes(verdicts.space))]


def _base_itself(verdicts: AxisVerdicts) -> list[str]:
    """That the base GPU itself cannot be had, where that is so."""
    reasons = {one.reason.removeprefix("constraint: "): None for one in verdicts.cuts if one.last != one.last}
    return [f"The base itself cannot be had ({reason})." for reason in reasons]


def document(verdicts: AxisVerdicts | None) -> list[dict[str, Any]]:
    """Return the verdicts as JSON: a mapping an axis, with its objectives and cuts."""
    if verdicts is None:
        return []
    axes = scanned_axes(verdicts.space)
    return [
        {
            "axis": axis.name,
            "unit": axis.unit,
            "base": verdicts.space.base.numbers()[axis.name],
            "sentence": _of_axis(verdicts, axis),
            "objectives": [_objective(one) for one in verdicts.of(axis.name)],
            "cuts": [_cut(one) for one in verdicts.cuts_of(axis.name)],
        }
        for axis in axes
    ]


def _objective(one: AxisVerdict) -> dict[str, Any]:
    return {
        "objective": one.objective.name,
        "unit": one.objective.unit,
        "pays": one.pays,
        "until": one.until,
        "of_base": float(f"{one.of_base:.7g}") if one.of_base == one.of_base else None,
        "at_base": float(f"{one.before:.7g}"),
        "at_until": float(f"{one.after:.7g}"),
        "most": float(f"{one.most:.7g}"),
        "most_at": one.most_at,
        "die_mm2": float(f"{one.area:.5g}"),
        "cause_beyond": one.cause or None,
        "power_limit": one.power_limit,
        "clock_share_beyond": round(one.clock, 4),
    }


def _cut(one: AxisCut) -> dict[str, Any]:
    last = None if one.last != one.last else one.last
    return {"from": one.value, "last": last, "upwards": one.upwards, "reason": one.reason}


def _of_axis(verdicts: AxisVerdicts, axis: Axis) -> str:
    """The paragraph of one axis: what pays more than the base has, what is enough, what cuts."""
    every = verdicts.of(axis.name)
    raised = [one for one in every if one.until > one.base * (1 + NEAR)]
    found = [_pays(group) for group in _alike(raised)]
    found += [_enough(group) for group in _alike([one for one in every if one not in raised])]
    name = capital(words(axis.attribute))
    if not raised:
        found.insert(0, _little(every) if every else "no objective gains")
    cuts = [_cut_text(one) for one in verdicts.cuts_of(axis.name) if one.last == one.last]
    return f"{name}: {'. '.join([found[0], *map(capital, [*_linked(every), *found[1:], *cuts])])}."


def _linked(every: list[AxisVerdict]) -> list[str]:
    """What the links of an axis change on the base GPU before the axis moves, where it is GAIN or more."""
    moved = [one for one in every if abs(one.before / one.of_base - 1) >= GAIN]
    parts = [f"{label(o.objective)} {number(o.of_base)} → {quantity(o.before, o.objective.unit)}" for o in moved]
    return [f"at the base's value its links alone change {joined(parts)}"] if parts else []


def _gained(one: AxisVerdict) -> float:
    """What more than the base has gains at most, of the objective on the base [1]."""
    return abs(one.most / one.before - 1)


def _little(every: list[AxisVerdict]) -> str:
    """What is gained where no step of 5 % gains 1 %: in all a little, or nothing."""
    gaining = [one for one in every if _gained(one) >= GAIN]
    if not gaining:
        return "nothing is gained by more than the base has"
    parts = [
        f"{label(one.objective)} {number(one.before)} → {quantity(one.most, one.objective.unit)} at "
        f"{one.most_at / one.base:.2f} times ({_number(one.most_at, one.axis)})"
        for one in gaining
    ]
    return f"more than the base has gains less than 1 % a step of 5 %, in all {joined(parts)}"


def _alike(every: list[AxisVerdict]) -> list[list[AxisVerdict]]:
    """Verdicts of the same value, together."""
    groups: dict[tuple[Any, ...], list[AxisVerdict]] = {}
    for one in every:
        groups.setdefault((one.pays, one.until), []).append(one)
    return [sorted(group, key=lambda one: not one.cause) for group in groups.values()]  # a time's cause speaks for all


def _pays(group: list[AxisVerdict]) -> str:
    """More than the base GPU's pays."""
    one = group[0]
    how = "pays to the end of the axis," if one.pays == ALWAYS else "pays up to"
    gains = [f"{label(o.objective)} {number(o.before)} → {quantity(o.after, o.objective.unit)}" for o in group]
    area = f", for {number(one.area)} mm² more" if one.area > 1 else ""
    beyond = f". Beyond it {_leads(one)}" if one.cause else ""
    return f"{how} {_value(one)}: {joined(gains)}{area}{beyond}"


def _enough(group: list[AxisVerdict]) -> str:
    """The base GPU's is enough, or more than enough."""
    one, names = group[0], joined([label(o.objective) for o in group])
    if one.pays == ALWAYS:
        return f"{names} {_gains(group)} up to the base's, the end of the axis"
    cause = f": beyond it {_leads(one)}" if one.cause else ""
    if one.pays == UNTIL and abs(one.until / one.base - 1) <= NEAR:
        return f"{names} {_gains(group)} up to the base's{cause}"
    lowest = ", the lowest of the axis," if one.pays != UNTIL else ""
    return f"for {names} {_value(one)}{lowest} is enough{cause}"


def _gains(group: list[AxisVerdict]) -> str:
    return "gains" if len(group) == 1 else "gain"


def _value(one: AxisVerdict) -> str:
    """A value of an axis as a multiple of the base's, and as such."""
    return f"{one.until / one.base:.2f} times the base's ({_number(one.until, one.axis)})"


def _number(value: float, axis: Axis) -> str:
    """A value of an axis with its unit, where its words do not say it."""
    text = short_value(float(f"{value:.4g}") if axis.attribute.type == "float" else value)
    return text if axis.unit in words(axis.attribute) else f"{text} {unit_text(axis.unit)}".rstrip()


def _leads(one: AxisVerdict) -> str:
    """What leads the time beyond, and whether the power limit holds the clock."""
    leads = f"{cause_text(one.cause)} leads"
    if not one.power_limit:
        return leads
    return f"the power limit leaves {100 * one.clock:.0f} % of the clock, and {leads}"


def _cut_text(one: AxisCut) -> str:
    """Which constraint cuts, and from where."""
    reason = one.reason.replace("constraint:", "the constraint")
    return f"{reason} cuts from {_number(one.value, one.axis)} {'up' if one.upwards else 'down'}"


def headline(verdicts: AxisVerdicts | None) -> str:
    """Return in one sentence which axes are worth more than the base GPU has, up to where, and which are not."""
    if verdicts is None:
        return ""
    best: dict[str, AxisVerdict] = {}
    for one in sorted(verdicts.verdicts, key=lambda one: one.until / one.base):
        best[one.axis.name] = one
    axes = scanned_axes(verdicts.space)
    if not axes:
        return ""
    paying = [a for a in axes if a.name in best and best[a.name].until > best[a.name].base * (1 + NEAR)]
    parts = [f"{words(a.attribute)} to {_times(best[a.name])}" for a in paying]
    gained = {one.axis.name: max(map(_gained, verdicts.of(one.axis.name))) for one in verdicts.verdicts}
    idle = [a for a in axes if a not in paying]
    little = [f"{words(a.attribute)} ({100 * gained[a.name]:.0f} %)" for a in idle if gained.get(a.name, 0) >= GAIN]
    nothing = [words(a.attribute) for a in idle if gained.get(a.name, 0) < GAIN]
    pays = f"From the base, more pays of {joined(parts)}" if parts else "From the base, more of no axis pays"
    gains = [f"little of {joined(little)}"] if little else []
    gains += [f"nothing of {joined(nothing)}"] if nothing else []
    return f"{pays}; more gains {joined(gains)}." if gains else f"{pays}."


def _times(one: AxisVerdict) -> str:
    end = " (the end of its axis)" if one.pays == ALWAYS else ""
    return f"{one.until / one.base:.2f} times{end}"


def setting_sentences(result: SweepResult) -> list[str]:
    """Return a sentence for each axis of base GPUs or settings: each objective's best at each value, and values that no
    design can be had with; nothing of a plain space."""
    axes = result.space.variants.axes if result.space.variants else ()
    return [_of_setting(result, axis) for axis in axes if len(axis) > 1 and not result.front.empty]


def setting_headline(result: SweepResult) -> list[str]:
    """Return which values the best design of the first objective has; nothing where no setting or base varies."""
    axes = [axis for axis in result.space.variants.axes if len(axis) > 1] if result.space.variants else []
    if not axes or result.front.empty:
        return []
    first = result.space.objectives[0]
    row = result.front.iloc[int(costs(result.front, [first])[:, 0].argmin())]
    values = [f"{axis.name} {axis_value(row[axis.name])}" for axis in axes]
    return [f"{superlative(first).capitalize()}: {joined(values)} ({quantity(float(row[first.name]), first.unit)})."]


def _of_setting(result: SweepResult, axis: Axis) -> str:
    """The sentence of one axis."""
    effects = result.axis_effects[result.axis_effects["axis"] == axis.name]
    parts = [_best_of_values(result, axis, effects, objective) for objective in result.space.objectives]
    lost = effects.groupby("number")["best"].count() == 0
    values = [axis_value(v) for n, v in zip(axis.numbers, axis.values, strict=True) if lost[n]]
    seen = "can be had" if result.n == result.space.size else "was seen on the front"
    without = f". No design {seen} with {joined(values, 'or')}" if values else ""
    unit = f" [{unit_text(axis.unit)}]" if unit_text(axis.unit) else ""
    return f"{axis.name}{unit}: {'; '.join(filter(None, parts))}{without}."


def _best_of_values(result: SweepResult, axis: Axis, effects: pd.DataFrame, objective: Objective) -> str:
    """An objective's best at each value of an axis, the best first; of base GPUs with the settings that it has."""
    rows = effects[(effects["objective"] == objective.name) & effects["best"].notna()]
    rows = rows.sort_values("best", ascending=objective.sign > 0, kind="stable").iloc[:MOST_VALUES]
    listed = [
        f"{axis_value(row['value'])} {number(row['best'])}{_settings_of(result, axis, row['value'], objective)}"
        for _, row in rows.iterrows()
    ]
    unit = f" [{unit_text(objective.unit)}]" if objective.unit else ""
    return f"best {label(objective)}{unit} of {', '.join(listed)}" if listed else ""


def _settings_of(result: SweepResult, axis: Axis, value: object, objective: Objective) -> str:
    """The settings of the best design of a base GPU, as " (batch 64, tp 4)"; "" of other axes, or where it was not
    kept."""
    others = [a for a in result.space.variants.axes if a is not axis and len(a) > 1] if result.space.variants else []
    here = result.sample[result.sample[axis.name] == value] if axis.name == BASE else result.sample.iloc[:0]
    if here.empty or not others or len(result.sample) < result.n_feasible:
        return ""
    row = here.iloc[int(costs(here, [objective])[:, 0].argmin())]
    parts = [f"{a.name.rpartition('.')[2]} {axis_value(row[a.name])}" for a in others]
    return f" ({', '.join(parts)})"


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
