"""The drawings of a page of ``dse scale``, from the data of :mod:`dse.reports.scale.data`."""

from html import escape
from math import ceil

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import BASELINE, BEST, EFFECT, GREY, INK, layout

METHOD_STYLES = {
    "recursion": (EFFECT, "solid", 2.2),
    "recursion_ratio": ("#56B4E9", "dash", 1.4),
    "equations": (BEST, "dash", 1.4),
    "proportional": (GREY, "dot", 1.4),
    "linear": ("#CC79A7", "dashdot", 1.4),
    "power_law": ("#E69F00", "dashdot", 1.4),
    "logarithmic": ("#999999", "longdash", 1.4),
}
"""Method -> colour, dash and width [px], the same in every panel."""

MOST_COLUMNS = 4
"""Panels in a row."""


def curves_figure(frame: pd.DataFrame, unit: str, small: float, large: float) -> go.Figure:
    """Draw performance a unit of size over the size (level: proportional scaling), a panel a benchmark.

    The table's points, each method's line from the large model on, and the recursion's interval.
    """
    frame = frame.assign(**{column: frame[column] / frame["size"] for column in ("ipc", "low", "high")})
    names = list(dict.fromkeys(frame["benchmark"]))
    columns = min(MOST_COLUMNS, len(names))
    rows = ceil(len(names) / columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[escape(name) for name in names],
        horizontal_spacing=0.06,
        vertical_spacing=min(0.1, 0.35 / rows),
    )
    for number, name in enumerate(names):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        part = frame[frame["benchmark"] == name]
        models = part[(part["series"] == "table") & part["size"].isin([small, large])]
        _interval(figure, part, models, place, first=number == 0)
        for method, (colour, dash, width) in METHOD_STYLES.items():
            line = pd.concat([models[models["size"] == large], part[part["series"] == method]])
            figure.add_scatter(
                x=line["size"],
                y=line["ipc"],
                mode="lines",
                name=method,
                legendgroup=method,
                showlegend=number == 0,
                line={"color": colour, "dash": dash, "width": width},
                **place,
                hovertemplate=f"{method}, %{{x}} {unit}s: %{{y:.4~g}} each<extra></extra>",
            )
        _measured(figure, part, unit, small, large, place, first=number == 0)
    sizes = sorted(set(frame["size"]))
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:g}" for size in sizes])
    figure.update_yaxes(rangemode="tozero", nticks=5)
    for column in range(1, columns + 1):
        last = rows if (rows - 1) * columns + column <= len(names) else rows - 1
        figure.update_xaxes(title_text=f"{unit}s", row=last, col=column)
    figure.update_yaxes(title_text=f"IPC/{unit}", col=1)
    layout(figure, 225 * rows + 150, t=130)  # the legend stands below the buttons, in as many lines as it needs
    return figure.update_layout(legend={"orientation": "h", "x": 0, "y": 1 + 95 / (225 * rows), "yanchor": "top"})


def _interval(figure: go.Figure, part: pd.DataFrame, models: pd.DataFrame, place: dict, first: bool) -> None:
    """The recursion's interval as a band from the large model on."""
    band = part[part["low"].notna()]
    start = models[models["size"] == models["size"].max()]
    x = [*start["size"], *band["size"]]
    low, high = ([*start["ipc"], *band[side]] for side in ("low", "high"))
    figure.add_scatter(
        x=[*x, *reversed(x)],
        y=[*low, *reversed(high)],
        fill="toself",
        fillcolor="rgba(0,114,178,0.15)",
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
        name="interval of the recursion",
        legendgroup="interval",
        showlegend=first,
        **place,
    )


def _measured(
    figure: go.Figure, part: pd.DataFrame, unit: str, small: float, large: float, place: dict, first: bool
) -> None:
    """The table's points: filled where they are the scale models, open where they were to be predicted."""
    table = part[part["series"] == "table"]
    is_model = table["size"].isin([small, large])
    for rows, name, fill in ((table[is_model], "scale models", INK), (table[~is_model], "simulated", "white")):
        figure.add_scatter(
            x=rows["size"],
            y=rows["ipc"],
            mode="markers",
            name=name,
            legendgroup=name,
            showlegend=first,
            marker={"size": 8, "color": fill, "line": {"color": INK, "width": 1.5}},
            **place,
            hovertemplate=f"{name}, %{{x}} {unit}s: %{{y:.4~g}} each<extra></extra>",
        )


def error_figure(frame: pd.DataFrame, unit: str) -> go.Figure:
    """Draw the mean absolute error [%] of every method on what all predict, a group a size, and how many it predicts;
    the largest stands in the hover."""
    figure = go.Figure()
    most = frame.groupby("size")["n"].transform("max")
    frame = frame.assign(few=[f" ({n})" if n < of else "" for n, of in zip(frame["n"], most, strict=True)])
    for method, (colour, _, _) in METHOD_STYLES.items():
        part = frame[(frame["method"] == method) & (frame["shared_n"] > 0)].sort_values("size")
        figure.add_bar(
            x=[f"{size:g} {unit}s" for size in part["size"]],
            y=part["shared_mean"],
            name=method,
            marker_color=colour,
            text=[f"{error:.1f}{few}" for error, few in zip(part["shared_mean"], part["few"], strict=True)],
            textposition="outside",
            cliponaxis=False,
            offsetgroup=method,
            customdata=part[["shared_max", "n"]],
            hovertemplate=f"{method}: mean %{{y:.2f}} %, largest %{{customdata[0]:.1f}} %; predicts %{{customdata[1]}} "
            "benchmarks<extra></extra>",
        )
    figure.update_yaxes(title_text="mean absolute error [%]")
    layout(figure, 340, t=50)
    return figure.update_layout(legend={"orientation": "h", "x": 0, "y": 1.04, "yanchor": "bottom"}, bargap=0.15)


def speed_up_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw simulation time of the largest target over that of both scale models, a panel a sheet, the mean last."""
    names = list(dict.fromkeys(frame["sheet"]))
    figure = make_subplots(cols=len(names), subplot_titles=[escape(name) for name in names], horizontal_spacing=0.08)
    for column, name in enumerate(names, start=1):
        part = frame[frame["sheet"] == name]
        part = part[part["size"] == part["size"].max()]
        colours = np.where(part["benchmark"] == "mean", BASELINE, EFFECT)
        figure.add_bar(
            x=[escape(b) for b in part["benchmark"]],
            y=part["factor"],
            marker_color=colours,
            showlegend=False,
            text=[f"{value:.1f}x" for value in part["factor"]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.2f} times faster<extra></extra>",
            row=1,
            col=column,
        )
        size, unit = part["size"].iloc[0], part["unit"].iloc[0]
        figure.update_yaxes(title_text=f"speed-up, {size:g} {unit}s", row=1, col=column)
    layout(figure, 320, t=50)
    return figure
