"""The drawings of what looking into the chosen designs found: rooflines and the tornado of elasticities."""

import textwrap
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import BASELINE, GREY, INK, layout
from dse.reports.common.figures_tornado import Tornado, legend_above
from dse.reports.common.ticks import log_axis
from dse.reports.sweep.data_explanations import SHOWN_AT_FIRST, roof_line

DESIGN_COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#8C6D00")
"""Colours of the chosen designs, one after another; the baseline has its own."""

TOP = 112
"""Room above the panels [px]: buttons, two rows of a legend, titles."""

MOST_PANELS = 4
"""Panels in a row of a tornado."""


def _designs(frame: pd.DataFrame) -> list[tuple[str, str, str, bool | str]]:
    """Each design with its letter, colour, and whether it is shown at first."""
    pairs = frame[["name", "letter"]].drop_duplicates().sort_values("letter", kind="stable")
    colours = iter(DESIGN_COLOURS)
    return [
        (name, letter, next(colours) if letter else BASELINE, True if i < SHOWN_AT_FIRST else "legendonly")
        for i, (name, letter) in enumerate(pairs.itertuples(index=False))
    ]


# --- Roofline ------------------------------------------------------------------------------------------------------


def rooflines_figure(points: pd.DataFrame, roofs: pd.DataFrame) -> go.Figure:
    """Draw the kernels of each design under its roofs: a panel a workload, both axes logarithmic and shared.

    A dot's area grows with its kernel's share of the phase's time; designs come and go by their legend.
    """
    workloads = list(dict.fromkeys(points["workload"]))
    columns = min(len(workloads), 2)
    rows = -(-len(workloads) // columns)
    titles = [f"<b>{escape(workload)}</b>" for workload in workloads]
    figure = make_subplots(
        rows=rows, cols=columns, horizontal_spacing=0.07, vertical_spacing=0.3 / rows, subplot_titles=titles
    )
    figure.update_annotations(font_size=13)
    ridges = roofs["peak_tflops"] * 1e3 / roofs["slope_gbs"]
    x = _ends(np.concatenate([points["intensity"].to_numpy(float), ridges.to_numpy(float)]))
    y = _ends(np.concatenate([points["tflops"].to_numpy(float), roofs["peak_tflops"].to_numpy(float)]))
    for number, workload in enumerate(workloads):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        for name, _, colour, shown in _designs(points):
            parts = [f[(f["workload"] == workload) & (f["name"] == name)] for f in (points, roofs)]
            for trace in (*_roofs(parts[1], colour, x), _kernels(parts[0], colour, number == 0)):
                trace.legendgroup, trace.visible = name, shown
                figure.add_trace(trace, **place)
        figure.update_xaxes(title_text="arithmetic intensity [FLOP per byte of DRAM]", **log_axis(*x), **place)
        title = "reached [TFLOP/s]" if place["col"] == 1 else None
        figure.update_yaxes(title_text=title, **log_axis(*y), **place)
    layout(figure, 430 * rows + TOP, t=TOP, b=50)
    figure.update_layout(legend=legend_above(430 * rows + TOP, TOP), hovermode="closest")
    return figure


def _ends(values: np.ndarray) -> tuple[float, float]:
    """A logarithmic range around values, a factor of two beyond them."""
    return 0.5 * float(values.min()), 2.0 * float(values.max())


def _roofs(roofs: pd.DataFrame, colour: str, x: tuple[float, float]) -> list[go.Scatter]:
    lines = []
    for _, roof in roofs.iterrows():
        across, up = roof_line(roof["peak_tflops"], roof["slope_gbs"], *x)
        text = f"{roof['unit']}: {roof['peak_tflops']:,.0f} TFLOP/s; DRAM {roof['slope_gbs']:,.0f} GB/s sustained"
        dash = "solid" if roof["unit"].startswith("tensor") else "dot"
        lines.append(
            go.Scatter(
                x=across,
                y=up,
                mode="lines",
                showlegend=False,
                line={"width": 1.5, "color": colour, "dash": dash},
                hovertemplate=f"{escape(text)}<extra>{escape(roof['name'])}</extra>",
            )
        )
    return lines


def _kernels(points: pd.DataFrame, colour: str, legend: bool) -> go.Scatter:
    """The kernels of a design; a design without any still has its entry in the legend."""
    share = points["share"].to_numpy(dtype=float)
    about = [points["kernel"].map(escape), 100 * points["of_roof"].astype(float), 100 * share]
    return go.Scatter(
        x=points["intensity"].to_numpy(dtype=float),
        y=points["tflops"].to_numpy(dtype=float),
        customdata=np.stack(about, axis=1) if len(points) else None,
        name=escape(str(points["name"].iloc[0])) if len(points) else "",
        mode="markers",
        marker={
            "size": 6 + 22 * np.sqrt(share),
            "color": colour,
            "opacity": 0.7,
            "line": {"width": 1, "color": "white"},
        },
        showlegend=legend and len(points) > 0,
        hovertemplate="%{customdata[0]}: %{x:,.3~r} FLOP/B, %{y:,.3~r} TFLOP/s, "
        "%{customdata[1]:.0f} % of the roof, %{customdata[2]:.0f} % of the time"
        "<extra>%{fullData.name}</extra>",
    )


# --- Tornado -------------------------------------------------------------------------------------------------------


def slopes_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw what 1 % more of each attribute changes [%]: a panel a workload's metric, a bar a design.

    Bars are re-evaluated steps, lines the elasticities; designs come and go by their legend.
    """
    panels, texts = list(dict.fromkeys(frame["panel"])), list(dict.fromkeys(frame["text"]))
    tornado = Tornado(panels, MOST_PANELS, 30 * len(texts), TOP)
    figure = tornado.figure()
    reach = 1.08 * max(float(frame[["step", "elasticity"]].abs().max(axis=None)), 0.1)
    for number, panel in enumerate(panels):
        for name, _, colour, shown in _designs(frame):
            part = frame[(frame["panel"] == panel) & (frame["name"] == name)]
            for trace in (_steps(part, colour, number == 0), _elasticities(part)):
                trace.legendgroup, trace.offsetgroup, trace.visible = name, name, shown
                figure.add_trace(trace, **tornado.place(number))
        tornado.scaled(figure, number, "change for 1 % more [%]", reach)
    names = ["<br>".join(escape(line) for line in textwrap.wrap(text, 26)) for text in texts]
    return tornado.finished(figure, names, scattermode="group")


def _steps(part: pd.DataFrame, colour: str, legend: bool) -> go.Bar:
    about = [part["move"].map(escape), 100 * part["change"].astype(float), part["why"].map(_why)]
    return go.Bar(
        x=part["step"].to_numpy(dtype=float),
        y=_names(part),
        orientation="h",
        name=escape(str(part["name"].iloc[0])),
        marker={"color": colour},
        showlegend=legend,
        customdata=np.stack(about, axis=1),
        hovertemplate="%{customdata[0]}: %{customdata[1]:+.2f} %, so %{x:+.3f} % for each 1 %%{customdata[2]}"
        "<extra>%{fullData.name}</extra>",
    )


def _why(text: str) -> str:
    return f"<br>the elasticity says otherwise: {escape(text)}" if text else ""


def _elasticities(part: pd.DataFrame) -> go.Scatter:
    return go.Scatter(
        x=part["elasticity"].to_numpy(dtype=float),
        y=_names(part),
        mode="markers",
        showlegend=False,
        marker={
            "symbol": "line-ns-open",
            "size": 10,
            "color": np.where(part["agrees"], GREY, INK).tolist(),
            "line": {"width": np.where(part["agrees"], 1.0, 2.0).tolist()},
        },
        name=escape(str(part["name"].iloc[0])),
        hovertemplate="elasticity (derivative at the design) %{x:+.3f}<extra>%{fullData.name}</extra>",
    )


def _names(part: pd.DataFrame) -> list[str]:
    return ["<br>".join(escape(line) for line in textwrap.wrap(text, 26)) for text in part["text"]]
