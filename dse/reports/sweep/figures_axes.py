"""The drawings of the space: what each axis does, and where on each axis the Pareto set sits."""

import textwrap
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import BASELINE, BEST, EFFECT, GREY, layout
from dse.reports.common.ticks import axis_range
from dse.reports.common.words import axis_value, label, short_value, short_values, unit_text
from dse.reports.sweep.data_axes import FIGURES, is_words
from dse.space.axis import Axis
from dse.space.space import Objective

PANEL_LETTERS = 14
"""Letters of an axis's words that stand side by side under a small panel; of longer ones the first and the last do."""

MOST_COLUMNS = 6
"""Small multiples in a row."""

LINES = (
    ("at_baseline", "only this axis moved from the baseline", EFFECT, "solid", 6),
    ("paired", "this axis alone: median over pairs of evaluated designs, from the baseline on", EFFECT, "solid", 6),
    ("best", "best of all feasible designs with this value", BEST, "dash", 0),
    ("median", "median of all feasible designs with this value", GREY, "dot", 0),
)


def axis_figures(
    frame: pd.DataFrame, objectives: list[Objective], axes: list[Axis], baseline: pd.DataFrame
) -> list[go.Figure]:
    """Draw each objective over the values of each axis: a row an objective, a column an axis; MOST_COLUMNS a figure."""
    groups = -(-len(axes) // MOST_COLUMNS)
    width = -(-len(axes) // groups)
    return [_axis_grid(frame, objectives, axes[i : i + width], baseline, width) for i in range(0, len(axes), width)]


def _axis_grid(
    frame: pd.DataFrame, objectives: list[Objective], axes: list[Axis], baseline: pd.DataFrame, width: int
) -> go.Figure:
    rows = len(objectives)
    figure = make_subplots(
        rows=rows, cols=width, shared_yaxes=True, horizontal_spacing=0.2 / max(width, 5), vertical_spacing=0.12 / rows
    )
    for row, objective in enumerate(objectives, start=1):
        all_values = frame[frame["objective"] == objective.name][list(FIGURES)].to_numpy(dtype=float)
        all_values = np.append(all_values, baseline[objective.name].to_numpy(dtype=float))
        figure.update_yaxes(row=row, **axis_range(all_values.ravel(), ticks=5))
        figure.update_yaxes(title_text=_wrapped(objective), title_font_size=11, row=row, col=1)
        for column, axis in enumerate(axes, start=1):
            part = frame[(frame["objective"] == objective.name) & (frame["axis"] == axis.name)]
            _effect(figure, part, objective, axis, baseline, (row, column))
    for column in range(len(axes) + 1, width + 1):
        figure.update_xaxes(visible=False, col=column)
        figure.update_yaxes(visible=False, col=column)
    layout(figure, 190 * rows + 120, l=90, t=50, b=70)
    figure.update_layout(legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "itemsizing": "trace"})
    return figure


def _wrapped(objective: Objective) -> str:
    lines = textwrap.wrap(label(objective), 22) + ([f"[{unit_text(objective.unit)}]"] if objective.unit else [])
    return "<br>".join(escape(line) for line in lines)


def _effect(
    figure: go.Figure,
    part: pd.DataFrame,
    objective: Objective,
    axis: Axis,
    baseline: pd.DataFrame,
    place: tuple[int, int],
) -> None:
    """One small panel: three lines, and the baseline's diamond where it lies on the axis."""
    row, column = place
    words = is_words(axis)
    at = [escape(text) for text in part["at"]] if words else part["number"].to_numpy(dtype=float)
    first = row == column == 1
    hover = f"{axis.name} %{{customdata}} {unit_text(axis.unit)}<br>%{{y:,.4~r}} {escape(unit_text(objective.unit))}"
    texts = at if words else short_values(list(at))
    for key, name, colour, dash, size in LINES:
        if part[key].isna().all():
            continue
        figure.add_trace(
            go.Scatter(
                x=at,
                y=part[key].to_numpy(dtype=float),
                customdata=texts,
                name=name,
                legendgroup=key,
                showlegend=first,
                mode="lines+markers",
                line={"color": colour, "width": 2 if size else 1.5, "dash": dash},
                marker={"size": size or (6 if words else 3), "color": colour},
                hovertemplate=f"{hover}<extra>{name}</extra>",
            ),
            row=row,
            col=column,
        )
    if len(baseline):
        here = baseline[axis.name].iloc[0]
        figure.add_trace(
            go.Scatter(
                x=[escape(axis_value(here)) if words else float(here)],
                y=[float(baseline[objective.name].iloc[0])],
                name="baseline",
                legendgroup="base",
                showlegend=first,
                mode="markers",
                marker={"symbol": "diamond", "size": 10, "color": BASELINE, "line": {"width": 1, "color": "white"}},
                customdata=[escape(short_value(here))],
                hovertemplate=f"{hover}<extra>baseline</extra>",
            ),
            row=row,
            col=column,
        )
    settings = {"type": "category"} if words else _few_ticks(axis, baseline)
    last = row == len(figure._grid_ref)
    unit = unit_text(axis.unit)
    title = f"{axis.name}<br><span style='color:{GREY}'>[{unit}]</span>" if unit else axis.name
    figure.update_xaxes(
        title_text=title if last else None, title_font_size=11, showticklabels=last, **settings, row=row, col=column
    )


def _few_ticks(axis: Axis, baseline: pd.DataFrame) -> dict[str, Any]:
    """Ticks at an axis's ends and at the baseline: what fits a small panel."""
    settings = axis_range(np.asarray([*axis.numbers, *baseline[axis.name].astype(float)]))
    low, high = settings["range"]
    place = np.log10 if settings.get("type") == "log" else float
    ticks = [min(axis.numbers), max(axis.numbers)]
    for value in baseline[axis.name].astype(float):
        if all(abs(place(value) - place(tick)) > 0.22 * (high - low) for tick in ticks):
            ticks.append(float(value))
    others = {key: value for key, value in settings.items() if key != "nticks"}
    return others | {"tickvals": ticks, "ticktext": short_values(ticks), "tickangle": 0}


# --- Where the front sits --------------------------------------------------------------------------------------------


def front_figures(frame: pd.DataFrame, axes: list[Axis], baseline: pd.DataFrame) -> list[go.Figure]:
    """Draw how many of the Pareto set have each value of each axis [%]: a panel an axis, MOST_COLUMNS a figure."""
    groups = -(-len(axes) // MOST_COLUMNS)
    width = -(-len(axes) // groups)
    return [_front_row(frame, axes[i : i + width], baseline, width) for i in range(0, len(axes), width)]


def _front_row(frame: pd.DataFrame, axes: list[Axis], baseline: pd.DataFrame, width: int) -> go.Figure:
    figure = make_subplots(rows=1, cols=width, shared_yaxes=True, horizontal_spacing=0.2 / max(width, 5))
    highest = 100 * float(frame["share"].max())
    figure.update_yaxes(range=[0, 1.16 * highest], nticks=5)
    figure.update_yaxes(title_text="share of the<br>Pareto set [%]", title_font_size=11, col=1)
    for column, axis in enumerate(axes, start=1):
        _places(figure, frame[frame["axis"] == axis.name], axis, baseline, 1.08 * highest, column)
    for column in range(len(axes) + 1, width + 1):
        figure.update_xaxes(visible=False, col=column)
        figure.update_yaxes(visible=False, col=column)
    layout(figure, 250, l=90, t=34, b=70)
    figure.update_layout(bargap=0.15, legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"})
    return figure


def _places(figure: go.Figure, part: pd.DataFrame, axis: Axis, baseline: pd.DataFrame, top: float, column: int) -> None:
    """One small panel: a bar a value, equally wide, and the baseline's diamond above its value."""
    unit = unit_text(axis.unit)
    texts = part["at"].tolist() if is_words(axis) else short_values(part["number"].tolist())
    figure.add_trace(
        go.Bar(
            x=np.arange(len(part)),
            y=100 * part["share"].to_numpy(dtype=float),
            marker={"color": EFFECT},
            name="Pareto set",
            customdata=np.stack([[escape(text) for text in texts], part["designs"]], axis=1),
            showlegend=column == 1,
            hovertemplate=f"{axis.name} %{{customdata[0]}} {unit}<br>%{{customdata[1]:,}} designs, %{{y:.1f}} %"
            "<extra>Pareto set</extra>",
        ),
        row=1,
        col=column,
    )
    if len(baseline):
        here = short_value(baseline[axis.name].iloc[0])
        figure.add_trace(
            go.Scatter(
                x=[_place(part, axis, baseline[axis.name].iloc[0])],
                y=[top],
                mode="markers",
                name="baseline's value",
                marker={"symbol": "diamond", "size": 10, "color": BASELINE, "line": {"width": 1, "color": "white"}},
                showlegend=column == 1,
                hovertemplate=f"baseline {axis.name} {escape(here)} {unit}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    room = len(part) <= (3 if is_words(axis) else 4) and (not is_words(axis) or sum(map(len, texts)) <= PANEL_LETTERS)
    ticks = list(range(len(part))) if room else [0, len(part) - 1]
    title = f"{axis.name}<br><span style='color:{GREY}'>[{unit}]</span>" if unit else axis.name
    figure.update_xaxes(
        title_text=title,
        title_font_size=11,
        tickvals=ticks,
        ticktext=[escape(texts[i]) for i in ticks],
        tickangle=0,
        range=[-0.8, len(part) - 0.2],
        showgrid=False,
        row=1,
        col=column,
    )


def _place(part: pd.DataFrame, axis: Axis, value: Any) -> float | None:
    """Where a value stands among an axis's, counted from 0; between two where it is none of them."""
    if is_words(axis):
        return float(part["at"].tolist().index(axis_value(value))) if axis_value(value) in set(part["at"]) else None
    numbers = part["number"].to_numpy(dtype=float)
    place = np.interp(float(value), numbers, np.arange(len(numbers)), left=-0.6, right=len(numbers) - 0.4)
    return float(place)
