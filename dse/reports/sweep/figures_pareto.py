"""Drawings of designs over a single objective, and of how a search's front grew; the page's explorer draws the rest."""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.grid.result import SweepResult
from dse.reports.common.figures import BASELINE, CLOUD_GREY, EFFECT, GREY, REFUSED_GREY, axis_title, layout
from dse.reports.common.words import bracketed, quantity
from dse.reports.sweep.data_infeasible import infeasible_designs
from dse.space.axis import Axis
from dse.space.space import Objective

BINS = 60
"""Bars of a histogram."""

HISTORY = {"hypervolume": "hypervolume [boxes]", "members": "designs on the front"}
"""Column of a search's history -> the title of its axis."""


def histogram_figure(frame: pd.DataFrame, objective: Objective, marks: list[tuple[str, float]]) -> go.Figure:
    """Draw how the feasible designs spread over a single objective, with the best and the baseline marked."""
    values = frame[objective.name].to_numpy(dtype=np.float32)
    counts, edges = np.histogram(values, bins=BINS)
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    hover = "about %{x}: %{y} designs<extra></extra>"
    figure = go.Figure(go.Bar(x=middles, y=counts, width=widths, marker={"color": CLOUD_GREY}, hovertemplate=hover))
    for position, (text, value) in enumerate(marks):
        colour = BASELINE if position < len(marks) - 1 else EFFECT
        figure.add_vline(x=value, line={"color": colour, "width": 2})
        figure.add_annotation(
            x=value,
            y=1.0 + 0.07 * position,
            yref="paper",
            showarrow=False,
            font={"color": colour},
            yanchor="bottom",
            text=f"{escape(text)} {escape(quantity(value, objective.unit))}",
        )
    figure.update_xaxes(title_text=axis_title(objective))
    figure.update_yaxes(title_text="feasible designs shown")
    layout(figure, 420, t=70)
    return figure


def line_figure(
    designs: pd.DataFrame, refused: pd.DataFrame, axis: Axis, objective: Objective, marks: list[tuple[str, pd.Series]]
) -> go.Figure:
    """Draw a single objective along the only axis that varies, of feasible ``designs`` and of those ``refused``.

    ``marks``: designs to point out, with their names.
    """
    whole = pd.concat([frame for frame in (designs, refused) if len(frame)]).sort_values(axis.name)
    line = {"mode": "lines", "line": {"color": GREY, "width": 1.2}, "hoverinfo": "skip"}
    figure = go.Figure(go.Scatter(x=whole[axis.name], y=whole[objective.name], **line))
    kinds = ((designs, "circle", EFFECT, "feasible"), (refused, "x-thin", REFUSED_GREY, "cannot be had"))
    for frame, symbol, colour, words in kinds:
        marker = {"symbol": symbol, "color": colour, "size": 7, "line": {"color": colour, "width": 1.4}}
        hover = f"{escape(axis.name)} %{{x}}: %{{y:.4~g}} {escape(objective.unit)}, {words}<extra></extra>"
        figure.add_scatter(
            x=frame[axis.name], y=frame[objective.name], mode="markers", marker=marker, hovertemplate=hover
        )
    for number, (text, design) in enumerate(marks):
        figure.add_annotation(
            x=design[axis.name],
            y=design[objective.name],
            text=f"{escape(text)} {escape(quantity(float(design[objective.name]), objective.unit))}",
            font={"color": BASELINE if number < len(marks) - 1 else EFFECT},
            ax=0,
            ay=-34 - 22 * number,
            arrowcolor=GREY,
            arrowhead=0,
        )
    figure.update_xaxes(title_text=escape(bracketed(axis.name, axis.unit)))
    figure.update_yaxes(title_text=axis_title(objective))
    layout(figure, 420, t=70)
    figure.update_layout(showlegend=False)
    return figure


def scatter_figure(result: SweepResult) -> go.Figure:
    """Draw designs over the last and the first objective: those shown, the front and the baseline.

    Designs that break a constraint are drawn beside them, but for a single objective's.
    """
    objectives = result.space.objectives
    y, x = objectives[0], objectives[-1]
    if len(objectives) == 1:
        return histogram_figure(result.sample, y, [("best", float(result.front[y.name].iloc[0]))])
    figure = go.Figure()
    for name, frame, colour, size in (
        ("designs that cannot be had", infeasible_designs(result), REFUSED_GREY, 6),
        ("feasible designs", result.sample, CLOUD_GREY, 4),
        ("front", result.front, EFFECT, 7),
        ("baseline", result.measured_baseline, BASELINE, 10),
    ):
        if frame.empty:
            continue
        marker = {"color": colour, "size": size, "symbol": "x-thin-open" if colour == REFUSED_GREY else "circle"}
        figure.add_scatter(x=frame[x.name], y=frame[y.name], mode="markers", name=name, marker=marker)
    figure.update_xaxes(title_text=axis_title(x))
    figure.update_yaxes(title_text=axis_title(y))
    layout(figure, 480)
    return figure


def history_figure(history: pd.DataFrame) -> go.Figure:
    """Draw the hypervolume and the members of the front over the evaluations of a search."""
    x = history["evaluations"].to_numpy()
    figure = make_subplots(cols=2, horizontal_spacing=0.09)
    for column, (name, title) in enumerate(HISTORY.items(), start=1):
        line = go.Scatter(
            x=x,
            y=history[name].to_numpy(dtype=float),
            mode="lines",
            line={"color": EFFECT, "width": 2, "shape": "hv"},
            hovertemplate=f"after %{{x:,}} evaluations: {title} %{{y:,.5~g}}<extra></extra>",
        )
        figure.add_trace(line, row=1, col=column)
        figure.update_xaxes(title_text="evaluations", tickformat=",", rangemode="tozero", row=1, col=column)
        figure.update_yaxes(title_text=title, tickformat=",", row=1, col=column)
    layout(figure, 300)
    figure.update_layout(showlegend=False)
    return figure
