"""The section of a page that tells how sure the order of the chosen designs is."""

from html import escape

import pandas as pd

from dse.grid.result import SweepResult
from dse.reports.common.page_parts import row, section, table
from dse.reports.common.words import MISSING, label, probability_text, signed_percent, span_text
from dse.reports.sweep.data_ratios import BASELINE, ORDER, chosen_ratios, on_front

SMALL = (
    "Beside each difference to the baseline: where 80 % of measured differences would lie, and how probably the design "
    "is better. On the front: how probably no other Pareto design dominates it."
)


def ratios_section(result: SweepResult) -> str:
    """Return each chosen design against the baseline: difference, its interval and who is better how probably."""
    ratios = chosen_ratios(result, among=False)
    ratios = ratios[ratios["against"] == BASELINE]
    if ratios.empty or ratios["unknown"].all():
        return ""
    head = '<th scope="col"></th>'
    head += "".join(
        f'<th scope="col" class="n" colspan="2">{escape(label(o))}<small>better</small></th>'
        for o in result.space.objectives
    )
    head += '<th scope="col" class="n">on the front</th>'
    members = on_front(result)
    rows = [
        row(f'<th scope="row">{escape(str(design))}</th>{_cells(part)}{_member(members.get(str(design)))}')
        for design, part in ratios.groupby("design", sort=False)
    ]
    return section("ratios", "How sure the order is", table(head, rows, f"{SMALL} {ORDER}"))


def _cells(part: pd.DataFrame) -> str:
    cells = []
    for _, one in part.iterrows():
        span = span_text(one["ratio_interval_80"])
        text = signed_percent(one["ratio"], 1.0) + (f" ({span})" if span else "")
        better = probability_text(one["probability_better"]) or MISSING
        cells.append(f'<td class="n">{text}</td><td class="n d">{escape(better)}</td>')
    return "".join(cells)


def _member(probability: float | None) -> str:
    return f'<td class="n">{escape(probability_text(probability) or MISSING)}</td>'
