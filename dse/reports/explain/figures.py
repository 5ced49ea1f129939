"""The drawings of an explanation's page, from the data of :mod:`dse.reports.explain.data`."""

from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.base.units import signed
from dse.reports.common.figures import BASELINE, EFFECT, GREY, INK, layout
from dse.reports.common.ticks import log_axis

LABEL = 0.12
"""Room of a bar's number, as a part of the axis."""


def roofline_figure(points: pd.DataFrame, peaks: dict[str, float], slope_gbs: float) -> go.Figure:
    """Draw the kernels [TFLOP/s] over their intensity [FLOP/B] under the roof of each unit, both logarithmic.

    A dot's area grows with its kernel's share of the phase; the heaviest kernel of a phase is named, the others by
    hovering.
    """
    figure = go.Figure()
    intensity = points["intensity"].to_numpy(dtype=float)
    ridges = [peak * 1e3 / slope_gbs for peak in peaks.values()]
    low, high = 0.5 * min([*intensity, *ridges]), 2.0 * max([*intensity, *ridges])
    for unit, peak in peaks.items():
        x = np.array([low, peak * 1e3 / slope_gbs, high])
        name = f"{unit}, {peak:,.0f} TFLOP/s; DRAM {slope_gbs:,.0f} GB/s"
        line = {"color": GREY, "width": 1.5}
        figure.add_trace(go.Scatter(x=x, y=np.minimum(peak, x * slope_gbs / 1e3), mode="lines", name=name, line=line))
    for phase, part in points.groupby("phase", sort=False):
        figure.add_trace(
            go.Scatter(
                x=part["intensity"].to_numpy(dtype=float),
                y=part["tflops"].to_numpy(dtype=float),
                text=[
                    escape(k) if s == part["share"].max() else ""
                    for k, s in zip(part["kernel"], part["share"], strict=True)
                ],
                customdata=np.stack(
                    [part["kernel"].map(escape), 100 * part["of_roof"].astype(float), 100 * part["share"]], axis=1
                ),
                name=escape(str(phase)),
                mode="markers+text",
                textposition="bottom right",
                textfont={"size": 10, "color": INK},
                marker={"size": 7 + 20 * np.sqrt(part["share"].to_numpy(dtype=float)), "opacity": 0.75},
                hovertemplate="%{customdata[0]}: %{x:,.3~r} FLOP/B, %{y:,.3~r} TFLOP/s, "
                "%{customdata[1]:.0f} % of the roof, %{customdata[2]:.0f} % of the time"
                "<extra>%{fullData.name}</extra>",
            )
        )
    reached = [*points["tflops"].to_numpy(dtype=float), *peaks.values()]
    figure.update_xaxes(title_text="arithmetic intensity [FLOP/B]", **log_axis(low, high, 12))
    figure.update_yaxes(title_text="reached [TFLOP/s]", **log_axis(0.5 * min(reached), 2.0 * max(reached), 10))
    layout(figure, 520, t=60)
    figure.update_layout(
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}, colorway=[EFFECT, BASELINE]
    )
    return figure


def _reach(change: np.ndarray) -> list[float] | None:
    """Ends of an axis of bars, with room for what is written beside the shortest; None where nothing changes."""
    low, high = min(0.0, change.min(initial=0.0)), max(0.0, change.max(initial=0.0))
    room = LABEL * (high - low)
    return [low - (room if low < 0 else 0.02 * room), high + (room if high > 0 else 0.02 * room)] if room else None


def tornado_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw the change [%] of each metric by each move, largest on top; what the elasticity promises is a line."""
    metrics, steps = list(dict.fromkeys(frame["metric"])), list(dict.fromkeys(frame["text"]))
    figure = make_subplots(cols=len(metrics), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=metrics)
    for column, metric in enumerate(metrics, start=1):
        part = frame[frame["metric"] == metric]
        names, change = [escape(text) for text in part["text"]], part["change"].to_numpy(dtype=float)
        bars = go.Bar(
            x=change,
            y=names,
            orientation="h",
            marker={"color": np.where(change > 0, BASELINE, EFFECT)},
            text=[signed(value, 1) if abs(value) >= 0.05 else "" for value in change],
            hovertemplate="%{y}: %{x:+.2f} %<extra></extra>",
        )
        figure.add_trace(bars, row=1, col=column)
        if part["promised"].notna().any():
            marker = {"symbol": "line-ns-open", "size": 13, "color": np.where(part["agrees"], GREY, INK)}
            hover = "the elasticity promises %{x:+.2f} %<extra></extra>"
            dots = go.Scatter(
                x=part["promised"].to_numpy(dtype=float), y=names, mode="markers", marker=marker, hovertemplate=hover
            )
            figure.add_trace(dots, row=1, col=column)
        figure.update_xaxes(
            title_text="change [%]", range=_reach(np.append(change, part["promised"].dropna())), row=1, col=column
        )
    figure.update_yaxes(categoryorder="array", categoryarray=[escape(text) for text in reversed(steps)])
    layout(figure, 26 * len(steps) + 130, l=20, t=60)
    figure.update_yaxes(ticks="", ticksuffix="  ", showgrid=False, automargin=True)
    figure.update_layout(showlegend=False, bargap=0.25)
    return figure
