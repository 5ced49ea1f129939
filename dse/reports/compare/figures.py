"""The drawings of a page of ``dse compare``: a panel a metric, a line a GPU over the axis, or bars without one."""

from html import escape
from math import ceil

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
    running = comparison.table[comparison.table["reason"] == ""]
    for place, metric in enumerate(metrics):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for number, gpu in enumerate(comparison.gpus):
            part = running[running["gpu"] == gpu.name]
            colour = COLOURS[number % len(COLOURS)]
            style = {"name": escape(gpu.name), "legendgroup": gpu.name, "showlegend": place == 0}
            if comparison.axis:
                figure.add_scatter(
                    x=part["value"], y=part[metric], mode="lines+markers", line={"color": colour}, **style, **where
                )
            else:
                figure.add_bar(x=[escape(gpu.name)], y=part[metric], marker={"color": colour}, **style, **where)
        figure.update_yaxes(rangemode="tozero", **where)
        if comparison.axis:
            figure.update_xaxes(type="category", title={"text": escape(comparison.axis)}, **where)
    layout(figure, 300 * rows + 60, t=40, b=60)
    figure.update_annotations(font={"size": 13, "color": INK})
    return figure
