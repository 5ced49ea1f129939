"""Which assumed numbers decide the answer of a sweep or a search: as a table, as sentences, as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dse.base.errors import expect
from dse.evaluate.shared_programs import DESIGNS
from dse.explanation.assumed_effects import BASE, AssumedEffects, assumed_effects
from dse.explanation.assumed_numbers import UNSURE, AssumedNumber
from dse.grid.result import SweepResult, records
from dse.pareto.search_result import SearchResult
from dse.reports.common.words import axis_value, capital, gpu_name, label, number, quantity, signed_percent, unit_text
from dse.reports.sweep.data import lettered_front
from dse.reports.sweep.design_explanations import Programs
from dse.space.designs import encoded

MOST = 5
"""Numbers that are shown; more where more change the order of recommended designs."""

SMALLEST = 0.002
"""A change of an objective below this is not listed [1]."""

OF_COUNTS = ("SM", "FU", "slice", "sub-core")
"""What a unit is of that a number's name says."""

METHOD = (
    "Each number moves alone over its plausible range; designs stay, their fastest kernels are chosen anew, and what "
    "the space links to the base GPU follows. Varied: assumed attributes of the base GPU, and what is assumed in the "
    "tables of power, area, cost and memory; and fitted areas, which move alone though the dies of their fit tie them. "
    "Not varied: coefficients of the timing model, and what its kernels are made with."
)


def assumed_numbers(result: SweepResult | SearchResult, programs: Programs | None = None) -> AssumedEffects | None:
    """Return what assumed numbers decide of the designs that a result recommends; None where it recommends none.

    ``programs``: those of the result's space, if they were begun before.
    """
    found = result.result if isinstance(result, SearchResult) else result
    expect("result", found, SweepResult, "give what dse.sweep or dse.search returns")
    front, letters = lettered_front(found, DESIGNS - 1)
    order = np.lexsort((np.arange(len(letters)), np.array(letters), np.array([not letter for letter in letters])))
    names = [letters[place] for place in order if letters[place]]
    if not names or found.space.variants:
        return None  # of other bases and other kernels other numbers are assumed
    designs = front.iloc[order]
    space = found.space
    axes = {axis.name: np.array([encoded(axis, cell) for cell in designs[axis.name]]) for axis in space.axes}
    return assumed_effects(space, axes, names, (programs or Programs(space)).evaluations())


def number_text(one: AssumedNumber) -> str:
    """Return a number's name in a sentence or beside a bar."""
    return one.text.removeprefix("of the ")


def value_text(one: AssumedNumber, value: float, unit: bool = True) -> str:
    """Return a value of a number, with its unit where its name does not say it."""
    plain = axis_value(value if float(value).is_integer() else float(f"{value:.3g}"))
    first, _, of = one.unit.rpartition("/")
    named = first if of in OF_COUNTS else one.unit
    return f"{plain} {unit_text(named)}".rstrip() if unit and named not in one.text else plain


def sentences(result: SweepResult, effects: AssumedEffects | None) -> list[str]:
    """Return the sentence of the first screen: which assumed number changes an order; nothing where none does.

    An order between recommended designs comes before one to the base GPU.
    """
    if effects is None:
        return []
    for kind, what in (("order", "An order"), ("base", "A comparison with the baseline")):
        rows = effects.changes[effects.changes["kind"] == kind]
        if rows.empty:
            continue
        gaps = (rows["first_at"] / rows["second_at"]).map(np.log).abs()
        row = rows.loc[gaps.idxmax()]
        sort = "an assumed" if effects.numbers[int(row["number"])].status in UNSURE else "an uncertain"
        text = change_text(result, effects, row)
        others = rows["number"].nunique() - 1
        also = f" {others} more such {'number does' if others == 1 else 'numbers do'} the like." if others else ""
        return [f"{what} rests on {sort} number: {text}.{also}"]
    return []


def change_text(result: SweepResult, effects: AssumedEffects, row: pd.Series) -> str:
    """Return a change of the order as a clause: "with L2 slices at 96 and not 80, C is no longer better than A in
    prefill time to first token (42.1 against 41.8 ms)"."""
    one = effects.numbers[int(row["number"])]
    given = f"with {number_text(one)} at {value_text(one, row['at'], False)} and not {value_text(one, one.value)}"
    if row["kind"] == "lost":
        return f"{given}, {row['first']} cannot be had ({row['why']})"
    if row["kind"] == "front":
        by = f"{row['second']} dominates {row['first']}" if row["second"] else f"{row['first']} leaves the front"
        return f"{given}, {by}"
    objective = next(o for o in result.space.objectives if o.name == row["objective"])
    second = f"the {gpu_name(result.space)}" if row["second"] == BASE else row["second"]
    now = f"{number(row['first_at'])} against {quantity(row['second_at'], objective.unit)}"
    verb = "is worse than" if row["kind"] == "base" else "falls behind"
    return f"{given}, {row['first']} {verb} {second} in {label(objective)} ({now})"


def ranges_of(effects: AssumedEffects, place: int) -> pd.DataFrame:
    """Return a number's effect by objective, on the design that it moves most there: the rows of ``effects`` with
    ``change_low`` and ``change_high`` [1]; an objective that it does not move is left out."""
    rows = effects.effects[effects.effects["number"] == place]
    rows = rows.assign(**{f"change_{end}": rows[f"at_{end}"] / rows["nominal"] - 1 for end in ("low", "high")})
    size = rows[["change_low", "change_high"]].abs().max(axis=1)
    most = size.groupby(rows["objective"], sort=False).idxmax().dropna()
    return rows.loc[most[size[most].to_numpy() >= SMALLEST]]


def lines(effects: AssumedEffects, names: Mapping[str, str], most: int = MOST) -> Iterator[str]:
    """Yield a line for each of the numbers that move the answer most; ``names``: objective -> its word."""
    several = effects.effects["design"].nunique() > 1
    for place in effects.deciding(most):
        one = effects.numbers[place]
        moved = [
            f"{names[r['objective']]}{of} {_span(r['change_low'], r['change_high'])}"
            for _, r in ranges_of(effects, place).iterrows()
            for of in [f" of {r['design']}" if several else ""]
        ]
        if moved:
            yield f"{capital(number_text(one))}, {value_text(one, one.value)} ({span_text(one)}): {'; '.join(moved)}"


def _span(low: float, high: float) -> str:
    return f"{signed_percent(1 + low, 1.0)} to {signed_percent(1 + high, 1.0)}"


def span_text(one: AssumedNumber) -> str:
    """Return a number's range, and whether it is the default one."""
    text = f"{value_text(one, one.low, False)} to {value_text(one, one.high, False)}"
    return text if one.range.stated else f"{text} by default"


def document(result: SweepResult, effects: AssumedEffects | None) -> dict[str, Any] | None:
    """Return the JSON of ``assumed_numbers``: those that move the answer most with all that they change, and what
    changes an order; None where nothing is recommended."""
    if effects is None:
        return None
    changes = effects.changes.assign(
        sentence=[change_text(result, effects, row) for _, row in effects.changes.iterrows()],
        number=[effects.numbers[int(place)].name for place in effects.changes["number"]],
    )
    return {
        "sentences": sentences(result, effects),
        "order_changes": records(changes),
        **effects.document(MOST),
        "method": METHOD,
    }
