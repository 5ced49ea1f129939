"""The drawings of a page of ``dse predict``, from the data of :mod:`dse.reports.predict.data`."""

from html import escape

import pandas as pd
import plotly.graph_objects as go

from dse.prediction.merits import THRESHOLDS
from dse.reports.common.figures import BASELINE, BEST, EFFECT, GREY, INK, layout

COLOURS = {"predictor": (EFFECT, BEST, "#56B4E9"), "baseline": (BASELINE, "#E69F00", "#CC79A7"), "reference": (GREY,)}
DASHES = {"predictor": "solid", "baseline": "dash", "reference": "dot"}


def inlier_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw the inlier ratio on the target over every threshold; the eight of the dissertation are marked."""
    figure = go.Figure()
    used = dict.fromkeys(COLOURS, 0)
    for name, part in frame.groupby("series", sort=False):
        kind = part["kind"].iloc[0]
        colour = COLOURS[kind][used[kind] % len(COLOURS[kind])]
        used[kind] += 1
        line = {"color": colour, "width": 2.2 if kind == "predictor" else 1.6, "dash": DASHES[kind]}
        hover = f"{escape(str(name))}: %{{y:.1f}} % of the rows within %{{x:.1f}} %<extra></extra>"
        figure.add_scatter(
            x=part["threshold"], y=part["inliers"], mode="lines", name=escape(str(name)), line=line, hovertemplate=hover
        )
    for threshold in THRESHOLDS:
        figure.add_vline(x=threshold, line={"color": INK, "width": 0.5, "dash": "dot"}, opacity=0.3)
    figure.update_xaxes(title_text="absolute error of at most [%]", range=[0, 100])
    figure.update_yaxes(title_text="rows of the target [%]", range=[0, 101])
    layout(figure, 460)
    return figure.update_layout(legend={"x": 0.99, "y": 0.02, "xanchor": "right", "yanchor": "bottom"})
