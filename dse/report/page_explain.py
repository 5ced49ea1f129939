"""One self-contained HTML page of an explanation: sentences, tornado, stack, roofline."""

from html import escape
from pathlib import Path

from dse.report import figures, figures_explain, figures_stacks, findings_explain
from dse.report.page_parts import document, note, swatches, write_whole
from dse.report.words import power_calibration, quantity
from dse.search.compare import SWAPS, Comparison
from dse.search.explain import METHOD, Explanation
from dse.search.neighbourhood import told_metrics
from dse.timing.timing import causes_of


def write_explain_page(found: Explanation | Comparison, path: Path) -> None:
    """Write the page of ``dse explain``; it gets its name only when it is whole. Same result, same bytes."""
    write_whole(path, explain_page_html(found))


def explain_page_html(found: Explanation | Comparison) -> str:
    """Return the page as one HTML document that loads nothing."""
    compared = isinstance(found, Comparison)
    run = found.first.run if isinstance(found, Comparison) else found.run
    on = f"{run.gpu.title} and {found.second.run.gpu.title}" if compared else run.gpu.title
    title = f"{run.workload.description} on {on}"
    metrics = "; ".join(quantity(*run.metrics[name]) for name in told_metrics(run.workload))
    lead = f"{run.gpu.title}: {metrics}. Timing model {type(run.model).__name__}, {run.calibration}. "
    lead += f"Power model: {power_calibration(run.power)}."
    sections = _comparison(found) if isinstance(found, Comparison) else _explanation(found)
    told = causes_of(run.workload)
    causes = swatches({cause: (figures.CAUSE_COLOURS[cause], text) for cause, text in told.items()})
    return document(title, "\n".join([f"<h1>{escape(title)}</h1>", note(lead), *sections, causes]))


def _explanation(found: Explanation) -> list[str]:
    parts = [_said("What would change it", found.sentences(), METHOD)]
    moves = findings_explain.tornado(found)
    if not moves.empty:
        drawn = figures_explain.tornado_figure(moves)
        note = "Bars: re-evaluated. Marks: what the elasticity promises, dark where it disagrees."
        parts.append(_figure("Each attribute moved alone", note, drawn, "figure-moves"))
    stacks = figures_stacks.stacks_figure(findings_explain.kernel_stacks(found.run))
    parts.append(
        _figure(
            "Where the time goes",
            "A bar a kernel, all its repeats; the colours are explained at the end.",
            stacks,
            "figure-stack",
        )
    )
    points, peaks, slope = findings_explain.roofline(found)
    if not points.empty:
        drawn = figures_explain.roofline_figure(points, peaks, slope)
        note = "The heaviest kernel is named; hover the others. Kernels without multiply-adds have no place here."
        parts.append(_figure("Roofline", note, drawn, "figure-roofline"))
    return parts


def _comparison(found: Comparison) -> list[str]:
    runs = [found.first.run, found.second.run]
    parts = [_said("What accounts for the difference", found.sentences(), SWAPS)]
    swaps = findings_explain.swap_tornado(found.swaps, told_metrics(runs[0].workload))
    if not swaps.empty:
        note = f"{runs[0].gpu.title} with one attribute of {runs[1].gpu.title}, re-evaluated."
        parts.append(_figure("Each attribute alone", note, figures_explain.tornado_figure(swaps), "figure-swaps"))
    stacks = figures_stacks.stacks_figure(findings_explain.design_stacks(runs))
    parts.append(_figure("Where the time goes", "A bar a design.", stacks, "figure-stack"))
    for number, side in enumerate((found.first, found.second), start=1):
        points, peaks, slope = findings_explain.roofline(side)
        if not points.empty:
            drawn = figures_explain.roofline_figure(points, peaks, slope)
            parts.append(_figure(f"Roofline of {side.run.gpu.title}", "", drawn, f"figure-roofline-{number}"))
    return parts


def _said(title: str, sentences: list[str], small: str) -> str:
    items = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f"<section>\n<h2>{escape(title)}</h2>\n{items}\n{note(small)}\n</section>"


def _figure(title: str, small: str, figure: figures.go.Figure, name: str) -> str:
    drawn = f"<figure style='margin:0'>{figures.figure_html(figure, name)}</figure>"
    return f"<section>\n<h2>{escape(title)}</h2>\n{note(small) if small else ''}\n{drawn}\n</section>"
