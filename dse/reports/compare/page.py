"""One self-contained HTML page of ``dse compare``: the answer, the plots, tables with ratios to the first GPU."""

from html import escape
from pathlib import Path

import pandas as pd

from dse.explanation.gpu_comparison import GpuComparison
from dse.reports.common.page_parts import (
    document,
    drawn,
    folded_notes,
    note,
    opening,
    row,
    section,
    swatches,
    table,
    write_document,
)
from dse.reports.common.words import capital, joined
from dse.reports.compare.data import (
    HEADS,
    answer,
    better_text,
    cells,
    compared_text,
    groups,
    ratio_text,
    reason_text,
    shown_metrics,
)
from dse.reports.compare.figures import gpu_colours, metric_figure


def write_comparison_page(comparison: GpuComparison, path: Path) -> None:
    """Write the page; it gets its name only when it is whole. Same comparison, same bytes."""
    write_document(path, comparison_page_html(comparison))


def comparison_page_html(comparison: GpuComparison) -> str:
    """Return the page as one HTML document that loads nothing."""
    names = joined([gpu.title for gpu in comparison.gpus])
    parts = [
        opening(comparison.workload, comparison.calibration, names, answer(comparison)),
        section("plots", "Side by side", _panels(comparison)),
        *(_table(comparison, title, rows, place) for place, (title, rows) in enumerate(groups(comparison))),
        note(f"{capital(compared_text(comparison))}."),
        folded_notes(comparison.notes),
    ]
    return document(f"{names} compared", "\n".join(parts))


def _panels(comparison: GpuComparison) -> str:
    """A figure a metric, and what its colours mean."""
    shown = [drawn(metric_figure(comparison, name), f"figure-compare-{name}") for name in shown_metrics(comparison)]
    return f'{swatches(gpu_colours(comparison))}<div class="panels">{"".join(shown)}</div>'


def _table(comparison: GpuComparison, title: str, rows: pd.DataFrame, place: int) -> str:
    heads = [*(HEADS[name] for name in shown_metrics(comparison)), "ratio", "better"]
    head = '<th scope="col">GPU</th>' + "".join(f'<th scope="col" class="n">{escape(text)}</th>' for text in heads)
    lines = []
    for _, one in rows.iterrows():
        beyond = f"<small>beyond {escape(one['beyond'])}</small>" if one["beyond"] else ""
        name = f'<th scope="row">{escape(str(one["title"]))}{beyond}</th>'
        if one["reason"]:
            lines.append(row(f'{name}<td colspan="{len(heads)}">cannot run it: {escape(reason_text(one))}</td>'))
            continue
        texts = [*cells(comparison, one), ratio_text(one), better_text(one)]
        lines.append(row(name + "".join(f'<td class="n">{escape(text)}</td>' for text in texts)))
    return section(f"table{place}", title or "All numbers", table(head, lines))
