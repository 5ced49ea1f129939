"""One self-contained HTML page of a sweep or a search: question, answer, figures, tables, provenance."""

import json
from html import escape
from pathlib import Path
from typing import Any

from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.axis_verdicts import AxisVerdicts
from dse.explanation.explain import ALONE
from dse.grid.result import SweepResult
from dse.power.power import COMPONENTS
from dse.reports.common import stacks as figures_stacks
from dse.reports.common.page_parts import document, drawn, note, row, section, swatches, table, write_document
from dse.reports.common.words import gpu_name, joined
from dse.reports.search.data import SearchReport
from dse.reports.sweep import data as findings
from dse.reports.sweep import data_axes as findings_axes
from dse.reports.sweep import data_explanations as findings_explanations
from dse.reports.sweep import figures_axes, figures_explanations, figures_pareto
from dse.reports.sweep.answer import answer
from dse.reports.sweep.data_infeasible import infeasible_designs, placed_designs
from dse.reports.sweep.design_explanations import DesignExplanations
from dse.reports.sweep.page_assumed import assumed_section
from dse.reports.sweep.page_explorer import explorer_section
from dse.reports.sweep.page_head import page_head, paragraphs
from dse.reports.sweep.page_ratios import ratios_section
from dse.reports.sweep.page_tables import chosen_section, explored, front_section, infeasible_section
from dse.reports.sweep.verdicts import METHOD as VERDICTS_METHOD
from dse.reports.sweep.verdicts import setting_sentences, verdict_sentences
from dse.timing.timing import PHASE_CAUSES


def write_page(
    shown: SweepResult | SearchReport,
    path: str | Path,
    explanations: DesignExplanations | None = None,
    assumed: AssumedEffects | None = None,
    verdicts: AxisVerdicts | None = None,
) -> None:
    """Write the page of a sweep or a search; it gets its name only when it is whole. Same result, same bytes.

    ``explanations`` (:func:`dse.reports.sweep.design_explanations.explain_designs`) add power, rooflines, elasticities;
    ``assumed`` (:func:`dse.reports.sweep.assumed.assumed_numbers`) the assumed numbers that decide the answer;
    ``verdicts`` (:func:`dse.explanation.axis_verdicts.axis_verdicts`) what each axis is worth.
    """
    write_document(Path(path), page_html(shown, explanations, assumed, verdicts))


def page_html(
    shown: SweepResult | SearchReport,
    explanations: DesignExplanations | None = None,
    assumed: AssumedEffects | None = None,
    verdicts: AxisVerdicts | None = None,
) -> str:
    """Return the page of a sweep or a search as one HTML document that loads nothing."""
    search = shown if isinstance(shown, SearchReport) else None
    result = shown.result if isinstance(shown, SearchReport) else shown
    sections = [
        page_head(result, search, assumed, verdicts),
        _pareto(result),
        _in_words(result, verdicts),
        assumed_section(result, assumed),
        chosen_section(result),
        ratios_section(result),
        _stacks(result),
        *_why(explanations),
        _places(result),
        _axes(result),
        front_section(result),
        infeasible_section(result),
        _search(search),
        _provenance(result, search),
    ]
    return document(f"{result.space.name}: design-space exploration", "\n".join(filter(None, sections)))


def _in_words(result: SweepResult, verdicts: AxisVerdicts | None) -> str:
    """The answer in sentences, and what each axis is worth, an item an axis."""
    if result.front.empty:
        return ""
    every = [sentence.partition(": ") for sentence in [*setting_sentences(result), *verdict_sentences(verdicts)]]
    items = [f"<li><strong>{escape(name)}</strong>{colon}{escape(text)}</li>" for name, colon, text in every]
    axes = f'<ul class="verdicts">{"".join(items)}</ul>{note(VERDICTS_METHOD)}' if items else ""
    return section("words", "In words", paragraphs(answer(result)), axes)


def _pareto(result: SweepResult) -> str:
    """The explorer, or with a single objective how designs spread over it."""
    if explored(result):
        return explorer_section(result)
    if result.front.empty:
        return _refused(result)
    objective = result.space.objectives[0]
    if (line := _line(result)) is not None:
        return section("pareto", "All designs", drawn(line, "figure-pareto"))
    marks = [(gpu_name(result.space), float(v)) for v in findings.measured_baseline(result)[objective.name]]
    marks.append(("best", float(result.front[objective.name].iloc[0])))
    shown = findings.shown_text(len(result.sample), result.n_feasible)
    figure = figures_pareto.histogram_figure(result.sample, objective, marks)
    return section("pareto", "All designs", note(f"Feasible designs: {shown}."), drawn(figure, "figure-pareto"))


def _refused(result: SweepResult) -> str:
    """Designs that break a constraint, where no other was found; nothing where none of them has results."""
    refused = placed_designs(result)
    if refused.empty:
        return ""
    shown = note(f"Designs that cannot be had: {findings.shown_text(len(refused), result.n - result.n_feasible)}.")
    return section("pareto", "All designs", shown, drawn(figures_pareto.scatter_figure(result), "figure-pareto"))


def _line(result: SweepResult) -> Any:
    """A single objective along the only axis that varies; None where several do, or its values are words."""
    axes = findings.varied_axes(result)
    if len(axes) != 1 or findings_axes.is_words(axes[0]):
        return None
    base = findings.measured_baseline(result)
    marks = [(gpu_name(result.space), base.iloc[0])] if len(base) else []
    marks.append(("best", result.front.iloc[0]))
    return figures_pareto.line_figure(
        result.sample, infeasible_designs(result), axes[0], result.space.objectives[0], marks
    )


def _stacks(result: SweepResult) -> str:
    frame = findings.stacks(result)
    if frame.empty:
        return ""
    rest = f"causes below {100 * findings.SMALL_SHARE:.0f} % in every design shown, together"
    meanings = PHASE_CAUSES | {findings.REST: rest}
    colours = figures_stacks.TIME.colours
    legend = {cause: (colours[cause], text) for cause, text in meanings.items() if cause in set(frame["cause"])}
    small_print = note("; ".join(f"{w.name}: {w.description}" for w in result.space.workloads) + ".")
    figure = drawn(figures_stacks.stacks_figure(frame), "figure-stacks")
    return section("stacks", "Where the time goes", small_print, figure, swatches(legend))


def _why(explanations: DesignExplanations | None) -> list[str]:
    return [] if explanations is None else [_power(explanations), _rooflines(explanations), _tornado(explanations)]


def _power(explanations: DesignExplanations) -> str:
    frame = findings_explanations.power_stacks(explanations)
    rest = f"components below {100 * findings.SMALL_SHARE:.0f} % in every design shown, together"
    meanings = COMPONENTS | {findings.REST: rest}
    colours = figures_stacks.POWER.colours
    legend = {part: (colours[part], text) for part, text in meanings.items() if part in set(frame["component"])}
    small_print = note(
        "Mean board power of each phase by component, the power limit held. Uncertain as said at the top."
    )
    figure = drawn(figures_stacks.stacks_figure(frame, figures_stacks.POWER), "figure-power")
    limits = [note(sentence) for sentence in findings_explanations.limit_sentences(explanations)]
    return section("power", "Where the power goes", small_print, *limits, figure, swatches(legend))


def _rooflines(explanations: DesignExplanations) -> str:
    if explanations.roofline.empty:
        return ""
    small_print = note(
        "A dot a kernel, its area by its share of the time, under the roofs of its own design (peaks at the sheet's "
        "clocks, DRAM bandwidth as sustained; dotted: vector units). Kernels without multiply-adds have no place here. "
        "Click a design in the legend to show or hide it."
    )
    figure = figures_explanations.rooflines_figure(explanations.roofline, explanations.roofs)
    return section("roofline", "Roofline", small_print, drawn(figure, "figure-roofline"))


def _tornado(explanations: DesignExplanations) -> str:
    frame = findings_explanations.slope_bars(explanations)
    if frame.empty:
        return ""
    small_print = note(
        "What 1 % more of each attribute changes. Bars: a step of about 10 %, re-evaluated with the fastest kernels "
        "chosen anew, told for each 1 %. Lines: the elasticity, a derivative at the design; thick where the step says "
        "otherwise, because the result bends within it (the hover says why). "
        f"{ALONE} Click a design in the legend to show or hide it."
    )
    return section(
        "elasticities",
        "What would change it",
        small_print,
        drawn(figures_explanations.slopes_figure(frame), "figure-tornado"),
    )


def _places(result: SweepResult) -> str:
    axes = findings.varied_axes(result)
    if not axes or result.front.empty:
        return ""
    frame, piled = findings_axes.front_places(result), findings_axes.piled_up(result)
    small_print = "Of the Pareto designs, how many have each value of each axis."
    if piled:
        small_print += f" {joined(piled)}: where an objective would still gain, better designs may lie beyond that end."
    base = findings.measured_baseline(result)
    parts = [drawn(f, f"figure-places-{i}") for i, f in enumerate(figures_axes.front_figures(frame, axes, base))]
    return section("places", "Where the Pareto set sits in the space", note(small_print), *parts)


def _axes(result: SweepResult) -> str:
    axes = findings.varied_axes(result)
    frame = findings_axes.axis_effect(result)
    if not axes or frame[list(findings_axes.FIGURES)].isna().all(axis=None):
        return ""
    small_print = "A panel's y axis is shared by its row. " + (
        "A search evaluates most where it is good, so only pairs of evaluated designs that differ in one axis alone "
        "tell what it does; a line ends where they are too few."
        if frame["paired"].notna().any()
        else "Best and median are taken over the feasible designs with that value."
    )
    links = ", ".join(name for name, _ in result.space.links)
    small_print += f" Linked attributes move with their axes (formulas at the end): {links}." if links else ""
    figures = figures_axes.axis_figures(frame, list(result.space.objectives), axes, findings.measured_baseline(result))
    parts = [drawn(figure, f"figure-axes-{i}") for i, figure in enumerate(figures)]
    return section("axes", "Effect of each axis", note(small_print), *parts)


def _search(search: SearchReport | None) -> str:
    """How the front grew with the evaluations."""
    if search is None or len(search.history) < 2:
        return ""
    small_print = note(
        "Hypervolume: what the Pareto set dominates up to a tenth beyond the worst corner of the first batch's front, "
        "on logarithms, in units of that front's box; it levels off as a search settles."
    )
    figure = figures_pareto.history_figure(search.history)
    return section("search", "How the search went", small_print, drawn(figure, "figure-search"))


def _provenance(result: SweepResult, search: SearchReport | None) -> str:
    rows_of_inputs = findings.provenance(result)
    if search is not None:
        how = (
            f"{search.sampler}, seed {search.seed}: {search.evaluations:,} evaluations, {result.n:,} different designs"
        )
        rows_of_inputs.insert(1, ("Search", how))
    rows = [row(f'<th scope="row">{escape(k)}</th><td>{escape(v)}</td>') for k, v in rows_of_inputs]
    content = escape(json.dumps(result.space.content, indent=1, ensure_ascii=False))
    source = f"<details><summary>The space file's content</summary><pre>{content}</pre></details>"
    return section("provenance", "Where this comes from", table("", rows), source)
