"""The figures of pages as plotly's, by name: what ``figure`` of a result returns."""

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from dse.base.errors import InputError, expect_one_of
from dse.explanation.gpu_comparison import GpuComparison
from dse.grid.result import SweepResult
from dse.pareto.search_result import SearchResult
from dse.reports.common.stacks import stacks_figure
from dse.reports.compare.figures import comparison_figure
from dse.reports.search.data import search_report
from dse.reports.sweep import data, data_axes, figures_axes
from dse.reports.sweep.data_infeasible import placed_designs
from dse.reports.sweep.figures_pareto import history_figure, scatter_figure
from dse.reports.validate import data as validate_data
from dse.reports.validate import figures as validate_figures
from dse.validation.time import TimeValidation

Drawing = Callable[[Any], go.Figure]


def _effects(result: SweepResult) -> go.Figure:
    """Every axis's effect on the first objective."""
    return _axes(result, result.space.objectives[0].name)


def _axes(result: SweepResult, objective: str) -> go.Figure:
    frame, axes = data_axes.axis_effect(result), data.varied_axes(result)
    chosen = [o for o in result.space.objectives if o.name == objective]
    return figures_axes.axis_figures(frame, chosen, axes, data.measured_baseline(result))[0]


SWEEP: dict[str, Drawing] = {
    "pareto": scatter_figure,
    "stacks": lambda result: stacks_figure(data.stacks(result)),
    "axes": _effects,
}
"""Figures of a sweep: all designs in two objectives, where the time goes, what each axis does."""

SEARCH: dict[str, Drawing] = {
    **{name: lambda search, draw=draw: draw(search_report(search).result) for name, draw in SWEEP.items()},
    "search": lambda search: history_figure(search_report(search).history),
}
VALIDATION: dict[str, Drawing] = {
    "scatter": lambda found: validate_figures.scatter_figure(validate_data.points(found)),
    "ratios": lambda found: validate_figures.ratio_figure(validate_data.points(found)),
    "worst": lambda found: validate_figures.worst_stacks_figure(validate_data.worst_stacks(found)),
}
FIGURES: dict[type, dict[str, Drawing]] = {
    SweepResult: SWEEP,
    SearchResult: SEARCH,
    GpuComparison: {"compare": comparison_figure},
    TimeValidation: VALIDATION,
}
"""Type of a result -> its figures by name, the main one first."""


def figure_names(result: Any) -> list[str]:
    """Return the names of a result's figures."""
    return list(FIGURES[type(result)])


def figure(result: Any, name: str = "") -> go.Figure:
    """Return a figure of a result; raises InputError where it has none of this name, or nothing to draw."""
    names = figure_names(result)
    name = name or names[0]
    expect_one_of("figure", name, names)
    swept = getattr(result, "result", result)
    if isinstance(swept, SweepResult) and swept.front.empty and not (name == "pareto" and len(placed_designs(swept))):
        raise InputError("figure: no design of the result is feasible; there is nothing to draw")
    return FIGURES[type(result)][name](result)
