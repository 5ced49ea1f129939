"""One self-contained HTML page of an explanation: the answer, tornado, stack, roofline, then what it rests on."""

from html import escape
from pathlib import Path

from dse.evaluate.run import RunResult
from dse.explanation.attribute_words import explained_metrics
from dse.explanation.compare import RATIO, SWAPS, Comparison
from dse.explanation.explain import METHOD, Explanation
from dse.explanation.next_step import next_sentence, sides
from dse.hardware.tensor_area import tensor_area_note
from dse.reports.common import figures
from dse.reports.common import stacks as stack_figures
from dse.reports.common.page_parts import (
    document,
    figure_section,
    folded_notes,
    note,
    opening,
    row,
    section,
    swatches,
    table,
    write_document,
)
from dse.reports.common.words import (
    RUN_LABELS,
    bracketed,
    capital,
    power_calibration,
    probability_text,
    quantity,
    signed_percent,
    span_text,
    timing_calibration,
)
from dse.reports.explain import data as explain_data
from dse.reports.explain import figures as explain_figures
from dse.reports.run.data import held_sentences
from dse.reports.run.notes import extrapolation, interval_notes
from dse.reports.sweep.assumed import METHOD as ASSUMED_METHOD
from dse.timing.timing import causes_of


def write_explain_page(answer: Explanation | Comparison, path: Path, most: int | None = None) -> None:
    """Write the page of ``dse explain``; it gets its name only when it is whole. Same result, same bytes."""
    write_document(path, explain_page_html(answer, most))


def explain_page_html(answer: Explanation | Comparison, most: int | None = None) -> str:
    """Return the page as one HTML document that loads nothing; of attributes and kernels the ``most`` important."""
    run = answer.first.run if isinstance(answer, Comparison) else answer.run
    on = f"{run.gpu.title} and {answer.second.run.gpu.title}" if isinstance(answer, Comparison) else run.gpu.title
    sections = _comparison(answer, most) if isinstance(answer, Comparison) else _explanation(answer, most)
    meanings = causes_of(run.workload)
    causes = swatches({cause: (figures.CAUSE_COLOURS[cause], text) for cause, text in meanings.items()})
    begin = opening(run.workload.description, run.model.calibration, on, _answer(answer))
    parts = [begin, *sections, causes, _notes(answer)]
    return document(f"{run.workload.description} on {on}", "\n".join(parts))


def _answer(answer: Explanation | Comparison) -> list[str]:
    """What takes the time and what helps most; of two designs, how far apart they are."""
    if isinstance(answer, Comparison):
        return [f"{answer.sentences()[0]}."]
    metrics = "; ".join(_metric_text(answer.run, name) for name in answer.metrics)
    return [f"{capital(metrics)}.", *held_sentences(answer.run), next_sentence(answer.steps)]


def _notes(answer: Explanation | Comparison) -> str:
    """What the answer rests on, folded."""
    run = answer.first.run if isinstance(answer, Comparison) else answer.run
    lines = [timing_calibration(run.model), f"power model: {power_calibration(run.power)}", *interval_notes(run)]
    if isinstance(answer, Comparison):
        if beyond := extrapolation(answer.second.run):
            lines.append(f"{answer.second.run.gpu.title}: {beyond}")
    elif known := tensor_area_note(run.gpu):
        lines.append(known)
    return folded_notes([f"{capital(line)}." for line in lines])


def _metric_text(run: RunResult, name: str) -> str:
    """Return a metric with its name, its unit and its interval."""
    word = run.metric_error(name).word
    return f"{RUN_LABELS[name]} {quantity(*run.metrics[name])}" + (f" ({word})" if word else "")


def _explanation(explanation: Explanation, most: int | None) -> list[str]:
    parts = []
    steps = explain_data.tornado(explanation, most or explain_data.MOST_BARS)
    if not steps.empty:
        drawn = explain_figures.tornado_figure(steps)
        note = "Bars: re-evaluated. Marks: what the elasticity promises, dark where it disagrees."
        parts.append(figure_section("Each attribute moved alone", note, drawn, "figure-moves"))
    faster, others = sides(explanation.steps)
    parts += [
        _sentences(title, texts[:most]) for title, texts in (("Faster with", faster), ("Not faster with", others))
    ]
    parts.append(_folded("Each step with what its elasticity promises", explanation.sentences()[:most], METHOD))
    stacks = stack_figures.stacks_figure(explain_data.kernel_stacks(explanation.run, most))
    small = f"{_heaviest(most)}A bar a kernel, all its repeats; the colours are explained at the end."
    parts.append(figure_section("Where the time goes", small, stacks, "figure-stack"))
    points, peaks, slope = explain_data.roofline(explanation, most)
    if not points.empty:
        drawn = explain_figures.roofline_figure(points, peaks, slope)
        note = "The heaviest kernel is named; hover the others. Kernels without multiply-adds have no place here."
        parts.append(figure_section("Roofline", note, drawn, "figure-roofline"))
    parts.append(
        _sentences("Assumed numbers that decide it", explain_data.assumed_lines(explanation, most), ASSUMED_METHOD)
    )
    return parts


def _heaviest(most: int | None) -> str:
    return "" if most is None else f"The {most} heaviest kernels of a phase. "


def _comparison(comparison: Comparison, most: int | None) -> list[str]:
    runs = [comparison.first.run, comparison.second.run]
    telling, others = comparison.told_apart()
    sentences = [*telling, *others][:most]
    telling, others = sentences[: len(telling)], sentences[len(telling) :]
    parts = [_metrics(comparison), _sentences("What accounts for the difference", telling, SWAPS)]
    parts.append(_folded(f"{len(others)} more with less effect", others, ""))
    swaps = explain_data.swap_tornado(
        comparison.swaps, explained_metrics(runs[0].workload), most or explain_data.MOST_BARS
    )
    if not swaps.empty:
        note = f"{runs[0].gpu.title} with one attribute of {runs[1].gpu.title}, re-evaluated."
        parts.append(
            figure_section("Each attribute alone", note, explain_figures.tornado_figure(swaps), "figure-swaps")
        )
    stacks = stack_figures.stacks_figure(explain_data.design_stacks(runs))
    parts.append(figure_section("Where the time goes", "A bar a design.", stacks, "figure-stack"))
    for number, side in enumerate((comparison.first, comparison.second), start=1):
        points, peaks, slope = explain_data.roofline(side, most)
        if not points.empty:
            drawn = explain_figures.roofline_figure(points, peaks, slope)
            parts.append(figure_section(f"Roofline of {side.run.gpu.title}", "", drawn, f"figure-roofline-{number}"))
    return parts


def _metrics(comparison: Comparison) -> str:
    """Both designs' metrics, each with its unit and its interval, and where 80 % of their differences lie."""
    runs = [comparison.first.run, comparison.second.run]
    head = '<th scope="col"></th>'
    head += "".join(f'<th scope="col" class="n" colspan="2">{escape(run.gpu.title)}</th>' for run in runs)
    head += '<th scope="col" class="n" colspan="2">difference<small>80 % of differences</small></th>'
    head += f'<th scope="col" class="n">better<small>{escape(runs[1].gpu.title)}, how probably</small></th>'
    rows = []
    for _, one in comparison.metrics.iterrows():
        name = bracketed(RUN_LABELS.get(one["metric"], str(one["metric"])), one["unit"])
        cells = f'<th scope="row">{escape(name)}</th>'
        for run, side in zip(runs, ("first", "second"), strict=True):
            cells += f'<td class="n">{one[side]:,.4g}</td><td class="n d">{run.metric_error(one["metric"]).word}</td>'
        cells += f'<td class="n">{signed_percent(one["second"], one["first"])}</td>'
        better = probability_text(one["probability_better"]) if one["ratio_80"] else ""
        cells += f'<td class="n d">{span_text(one["ratio_80"])}</td><td class="n">{escape(better)}</td>'
        rows.append(row(cells))
    stated = comparison.metrics["ratio_80"].notna().any()
    small = [note(text) for text in ([RATIO] if stated else []) + comparison.host_notes()]
    return section("metrics", "Side by side", table(head, rows), *small)


def _sentences(title: str, sentences: list[str], small: str = "") -> str:
    """A section of sentences, nothing where there are none."""
    said = [f"<p>{escape(sentence)}</p>" for sentence in sentences]
    return section("", title, *said, note(small) if small else "") if said else ""


def _folded(title: str, sentences: list[str], small: str) -> str:
    """Sentences that a reader unfolds, nothing where there are none."""
    said = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f"<details>\n<summary>{escape(title)}</summary>\n{said}\n{note(small) if small else ''}\n</details>"
        if said
        else ""
    )
