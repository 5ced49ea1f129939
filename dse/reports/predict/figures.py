"""The drawings of a page of ``dse predict``, from the data of :mod:`dse.reports.predict.data`."""

from html import escape

import pandas as pd
import plotly.graph_objects as go

from dse.prediction.merits import THRESHOLDS
from dse.prediction.quantities import Response
from dse.reports.common.figures import BASELINE, BEST, EFFECT, GREY, INK, layout

COLOURS = {"predictor": (EFFECT, BEST, "#56B4E9"), "baseline": (BASELINE, "#E69F00", "#CC79A7"), "reference": (GREY,)}
DASHES = {"predictor": "solid", "baseline": "dash", "reference": "dot"}


NEAR = 0.2
"""Error at which the dotted lines of predicted against measured stand [1]."""


def predicted_figure(frame: pd.DataFrame, predictor: str, quantity: Response) -> go.Figure:
    """Draw predicted over measured ``quantity`` of the target's rows, by the chosen ``predictor`` and the model alone:
    on the line both are equal, and between the dotted ones within 20 %."""
    figure, unit = go.Figure(), quantity.unit
    for column, name, colour in (
        ("analytical", f"{quantity.model} alone", GREY),
        ("predicted", f"{predictor}, chosen", EFFECT),
    ):
        hover = f"%{{text}}<br>{escape(name)}: %{{y:.4g}} {unit}, measured %{{x:.4g}} {unit}<extra></extra>"
        figure.add_scatter(
            x=frame["measured"],
            y=frame[column],
            text=frame["shape"].map(lambda shape: escape(str(shape))),
            mode="markers",
            name=escape(name),
            marker={"color": colour, "size": 5, "opacity": 0.6},
            hovertemplate=hover,
        )
    ends = [frame["measured"].min(), frame["measured"].max()]
    for off, dash in ((0.0, "solid"), (NEAR, "dot"), (-NEAR, "dot")):
        line = {"color": INK, "width": 1, "dash": dash}
        figure.add_scatter(
            x=ends, y=[(1.0 + off) * x for x in ends], mode="lines", line=line, showlegend=False, hoverinfo="skip"
        )
    figure.update_xaxes(title_text=f"measured [{unit}]", type="log")
    figure.update_yaxes(title_text=f"predicted [{unit}]", type="log")
    layout(figure, 460)
    return figure.update_layout(legend={"x": 0.01, "y": 0.99, "xanchor": "left", "yanchor": "top"})


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
