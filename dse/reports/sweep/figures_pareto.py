"""Drawings of designs over a single objective, and of how a search's front grew; the page's explorer draws the rest."""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import BASELINE, CLOUD_GREY, EFFECT, axis_title, layout
from dse.reports.common.words import quantity
from dse.space.space import Objective

HISTORY = {"hypervolume": "hypervolume [boxes]", "members": "designs on the front"}
"""Column of a search's history -> the title of its axis."""


def histogram_figure(frame: pd.DataFrame, objective: Objective, marks: list[tuple[str, float]]) -> go.Figure:
    """Draw how the feasible designs spread over a single objective, with the best and the baseline marked."""
    values = frame[objective.name].to_numpy(dtype=np.float32)
    hover = "%{x}: %{y} designs<extra></extra>"
    figure = go.Figure(go.Histogram(x=values, nbinsx=60, marker={"color": CLOUD_GREY}, hovertemplate=hover))
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
