"""One self-contained HTML page of ``dse scale``: performance against size, errors, simulation time."""

from html import escape
from pathlib import Path

from dse.report import figures, figures_scaling, findings_scaling
from dse.report.page_parts import document, write_whole
from dse.report.terminal_scaling import coverage_text, notes
from dse.scaling.scale import ScaleAnswer, SheetAnswer


def write_scaling_page(answer: ScaleAnswer, path: Path) -> None:
    """Write the page; it gets its name only when it is whole. Same answer, same bytes."""
    write_whole(path, scaling_page_html(answer))


def scaling_page_html(answer: ScaleAnswer) -> str:
    """Return the page as one HTML document that loads nothing."""
    title = f"{Path(answer.table).name}: large systems from two scale models"
    parts = [f"<h1>{escape(title)}</h1>", *(f'<p class="note">{escape(note)}</p>' for note in notes(answer))]
    for number, sheet in enumerate(answer.sheets):
        if sheet.points:
            parts.append(_sheet(sheet, number))
    speed_ups = findings_scaling.speed_ups(answer)
    if not speed_ups.empty:
        note = "Simulation time of the target over that of both scale models together."
        parts.append(_figure("Simulation time", note, figures_scaling.speed_up_figure(speed_ups), "figure-speed-up"))
    return document(title, "\n".join(parts))


def _sheet(answer: SheetAnswer, number: int) -> str:
    unit = answer.sheet.unit
    errors = findings_scaling.error_table(answer)
    parts = []
    if not errors.empty:
        drawn = figures_scaling.error_figure(errors, unit)
        note = "Mean over the benchmarks; hover for the largest. " + coverage_text(answer)
        parts.append(_figure(f"{answer.sheet.name}: errors", note, drawn, f"figure-errors-{number}"))
    drawn = figures_scaling.curves_figure(findings_scaling.curves(answer), unit, answer.small, answer.large)
    note = (
        f"Predicted from {answer.small:g} and {answer.large:g} {unit}s. Band: the recursion's interval, which reaches "
    )
    note += "the farthest of the other methods that use both models."
    parts.append(_figure(f"{answer.sheet.name}: performance against size", note, drawn, f"figure-curves-{number}"))
    return "\n".join(parts)


def _figure(title: str, note: str, figure: figures.go.Figure, name: str) -> str:
    drawn = f"<figure style='margin:0'>{figures.figure_html(figure, name)}</figure>"
    return f'<section>\n<h2>{escape(title)}</h2>\n<p class="note">{escape(note)}</p>\n{drawn}\n</section>'
