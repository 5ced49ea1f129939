"""The section of a page on assumed numbers: its tornado, and the answer at both ends of each range."""

from html import escape

import pandas as pd

from dse.explanation.assumed_effects import AssumedEffects
from dse.grid.result import SweepResult
from dse.reports.common.page_parts import drawn, note, row, section, table
from dse.reports.common.words import MISSING, capital, label, number, signed_percent, unit_text
from dse.reports.sweep.assumed import METHOD, MOST, change_text, number_text, ranges_of, span_text, value_text
from dse.reports.sweep.figures_assumed import assumed_figure

MOST_CHANGES = 8
"""Changes of the order that are listed in full."""


def assumed_section(result: SweepResult, effects: AssumedEffects | None) -> str:
    """Return the section; nothing where no number moves the answer."""
    places = effects.deciding(MOST) if effects else []
    if effects is None or not places:
        return ""
    small_print = note(
        f"The {len(places)} of {len(effects.numbers)} assumed numbers that move the answer most: pale bars at the low "
        "end of a number's range, full bars at its high end. Click a design in the legend to show or hide it."
    )
    head = '<th scope="col">number</th><th scope="col" class="n">taken as</th><th scope="col" class="n">range</th>'
    head += "".join(
        f'<th scope="col" class="n">{escape(label(o))}<small>{escape(unit_text(o.unit))}</small></th>'
        for o in result.space.objectives
    )
    rows = [row(_cells(result, effects, place)) for place in places]
    caption = "At both ends of the range, of the design that the number moves most."
    parts = (
        drawn(assumed_figure(result, effects), "figure-assumed"),
        table(head, rows, caption),
        _orders(result, effects),
    )
    return section("assumed", "Assumed numbers that decide the answer", small_print, *parts, note(METHOD))


def _cells(result: SweepResult, effects: AssumedEffects, place: int) -> str:
    one = effects.numbers[place]
    why = f"{one.status} ({one.table}): {one.source}. Range: {one.range.source}."
    cells = f'<th scope="row" class="w" title="{escape(why, quote=True)}">{escape(capital(number_text(one)))}</th>'
    cells += f'<td class="n">{escape(value_text(one, one.value))}</td><td class="n">{escape(span_text(one))}</td>'
    moved = ranges_of(effects, place).set_index("objective")
    for objective in result.space.objectives:
        if objective.name not in moved.index:
            cells += f'<td class="n">{MISSING}</td>'
            continue
        cells += f'<td class="n">{_ends(moved.loc[objective.name])}</td>'
    return cells


def _ends(effect: pd.Series) -> str:
    """What an objective becomes at both ends, and by how much it changes."""
    low, high = (number(effect[f"at_{end}"]) for end in ("low", "high"))
    percents = [signed_percent(1 + effect[f"change_{end}"], 1.0) for end in ("low", "high")]
    return f"{escape(str(effect['design']))}: {low} to {high}<br><small>{percents[0]} to {percents[1]}</small>"


def _orders(result: SweepResult, effects: AssumedEffects) -> str:
    """What changes the order of designs, or that nothing does."""
    if effects.changes.empty:
        return note(
            "None of them changes the order of two recommended designs by more than 1 %, makes one worse than the "
            f"baseline in what it was no worse in, or takes it from the front (against {effects.challengers} further "
            "members)."
        )
    kinds = ["order", "base", "lost", "front"]
    changes = effects.changes.sort_values("kind", key=lambda kind: kind.map(kinds.index), kind="stable")
    texts = [change_text(result, effects, change) for _, change in changes.iterrows()]
    items = "".join(f"<li>{escape(capital(text))}.</li>" for text in texts[:MOST_CHANGES])
    more = f"<li>{len(texts) - MOST_CHANGES} more in the JSON of --json.</li>" if len(texts) > MOST_CHANGES else ""
    return f"<p>What would change an order:</p><ul>{items}{more}</ul>"
