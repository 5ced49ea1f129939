"""One self-contained HTML page of ``dse scale``: performance against size, errors, simulation time."""

from html import escape
from pathlib import Path

from dse.reports.common.page_parts import document, figure_section, note, write_document
from dse.reports.scale import data as scaling_data
from dse.reports.scale import figures as scaling_figures
from dse.scaling.scale import ScaleAnswer, SheetAnswer


def write_scaling_page(answer: ScaleAnswer, path: Path) -> None:
    """Write the page; it gets its name only when it is whole. Same answer, same bytes."""
    write_document(path, scaling_page_html(answer))


def scaling_page_html(answer: ScaleAnswer) -> str:
    """Return the page as one HTML document that loads nothing."""
    title = f"{Path(answer.table).name}: large systems from two scale models"
    parts = [f"<h1>{escape(title)}</h1>", *map(note, scaling_data.scaling_notes(answer))]
    for number, sheet in enumerate(answer.sheets):
        if sheet.points:
            parts.append(_sheet(sheet, number))
    speed_ups = scaling_data.speed_ups(answer)
    if not speed_ups.empty:
        words = "Simulation time of the target over that of both scale models together."
        parts.append(
            figure_section("Simulation time", words, scaling_figures.speed_up_figure(speed_ups), "figure-speed-up")
        )
    return document(title, "\n".join(parts))


def _sheet(answer: SheetAnswer, number: int) -> str:
    unit = answer.sheet.unit
    errors = scaling_data.error_table(answer)
    parts = []
    if not errors.empty:
        drawn = scaling_figures.error_figure(errors, unit)
        compared = scaling_data.compared_text(answer)
        mean = f"Mean error; hover for the largest. {compared} {scaling_data.coverage_text(answer)}"
        parts.append(figure_section(f"{answer.sheet.name}: errors", mean, drawn, f"figure-errors-{number}"))
    curves = scaling_figures.curves_figure(scaling_data.curves(answer), unit, answer.small, answer.large)
    band = (
        f"Predicted from {answer.small:g} and {answer.large:g} {unit}s. Band: the recursion's interval, which reaches "
        "the farthest of the other methods that use both models."
    )
    title = f"{answer.sheet.name}: performance against size"
    parts.append(figure_section(title, band, curves, f"figure-curves-{number}"))
    return "\n".join(parts)
