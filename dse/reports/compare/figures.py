"""The drawings of a page of ``dse compare``: a panel a metric, a line a GPU over the axis, or bars without one."""

from html import escape
from math import ceil
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.explanation.gpu_comparison import GpuComparison
from dse.reports.common.figures import INK, layout
from dse.reports.compare.data import HEADS, shown_metrics

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#999933")
"""Colours of the GPUs, in their order (P. Tol's and Okabe's colour-blind-safe sets)."""

MOST_COLUMNS = 3
"""Panels in a row."""


def comparison_figure(comparison: GpuComparison) -> go.Figure:
    """Draw every shown metric of every GPU that runs, the first GPU first."""
    metrics = shown_metrics(comparison)
    columns = min(MOST_COLUMNS, len(metrics))
    rows = ceil(len(metrics) / columns)
    titles = [escape(HEADS[name]) for name in metrics]
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=titles, vertical_spacing=0.28 / rows)
    for place, metric in enumerate(metrics):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _traces(comparison, metric):
            figure.add_trace(trace.update(showlegend=place == 0), **where)
        _name_axes(figure, comparison, **where)
    layout(figure, 300 * rows + 60, t=40, b=60)
    figure.update_annotations(font={"size": 13, "color": INK})
    return figure


def metric_figure(comparison: GpuComparison, metric: str) -> go.Figure:
    """Draw one shown metric, small and without a legend: pages set as many beside each other as there is room for."""
    figure = go.Figure(_traces(comparison, metric))
    _name_axes(figure, comparison)
    layout(figure, 250, l=50, r=12, t=34, b=44)
    title = {"text": escape(HEADS[metric]), "font": {"size": 13, "color": INK}, "x": 0.5, "y": 0.97}
    figure.update_layout(title=title, showlegend=False)
    return figure


def gpu_colours(comparison: GpuComparison) -> dict[str, tuple[str, str]]:
    """Return GPU -> its colour in the figures, and its title."""
    return {gpu.name: (COLOURS[n % len(COLOURS)], gpu.title) for n, gpu in enumerate(comparison.gpus)}


def _traces(comparison: GpuComparison, metric: str) -> list[Any]:
    """A line or a bar for each GPU."""
    running, traces = comparison.table[comparison.table["reason"] == ""], list[Any]()
    for gpu, (colour, _) in gpu_colours(comparison).items():
        part, style = running[running["gpu"] == gpu], {"name": escape(gpu), "legendgroup": gpu}
        if comparison.axis:
            style |= {"mode": "lines+markers", "line": {"color": colour}}
            traces.append(go.Scatter(x=part["value"], y=part[metric], **style))
        else:
            traces.append(go.Bar(x=[escape(gpu)], y=part[metric], marker={"color": colour}, **style))
    return traces


def _name_axes(figure: go.Figure, comparison: GpuComparison, **where: int) -> None:
    figure.update_yaxes(rangemode="tozero", **where)
    if comparison.axis:
        figure.update_xaxes(type="category", title={"text": escape(comparison.axis)}, **where)
