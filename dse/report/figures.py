"""The drawings of a page, from the data of :mod:`dse.report.findings`; only figures*.py import plotly."""

import textwrap
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from dse.report.findings import REST, Scatter
from dse.report.words import axis_value, bracketed, label, number, quantity, unit_text
from dse.space.axis import Axis
from dse.space.space import Objective

INK, GREY, GRID, CLOUD_GREY = "#222222", "#666666", "#E8E8E8", "#C9CED6"
BASELINE, EFFECT, BEST = "#D55E00", "#0072B2", "#009E73"

CAUSE_COLOURS = {
    "selected": "#BBBBBB",
    "wait": "#117733",
    "short_scoreboard": "#88CCEE",
    "long_scoreboard": "#44AA99",
    "math_pipe_throttle": "#332288",
    "lg_throttle": "#DDCC77",
    "mio_throttle": "#882255",
    "launch": "#AA4499",
    "divergence": "#6699CC",
    "dram_bandwidth": "#CC6677",
    "l2_bandwidth": "#999933",
    "interconnect": "#661100",
    REST: "#E6E6E6",
}
"""Cause -> colour, the same in every figure (P. Tol's colour-blind-safe set)."""

LIGHT = {"selected", "short_scoreboard", "lg_throttle", REST}
"""Causes whose colour takes dark text."""

LOG_RATIO = 3.0
"""A range that spans more than this factor is drawn on a logarithmic axis."""

MOST_COLUMNS = 6
"""Small multiples in a row."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}


def plotly_script() -> str:
    """Return the text of plotly.js, for one script element a page."""
    return get_plotlyjs()


def figure_html(figure: go.Figure, div_id: str) -> str:
    """Return a figure as a division of a page that holds plotly.js already."""
    height = f"{figure.layout.height:.0f}px"
    return pio.to_html(
        figure, config=CONFIG, include_plotlyjs=False, full_html=False, div_id=div_id, default_height=height
    )


def layout(figure: go.Figure, height: int, **margin: int) -> None:
    """Give a figure the height [px], margins and fonts of the page."""
    figure.update_layout(
        height=height,
        margin={"l": 70, "r": 20, "t": 20, "b": 50} | margin,
        font={"family": FONT, "size": 12, "color": INK},
        paper_bgcolor="white",
        plot_bgcolor="white",
        hoverlabel={"font": {"family": FONT, "size": 12}, "align": "left", "bgcolor": "white"},
    )
    line = {"showline": True, "linecolor": GREY, "linewidth": 1, "ticks": "outside", "ticklen": 4, "zeroline": False}
    figure.update_xaxes(gridcolor=GRID, title_standoff=8, **line)
    figure.update_yaxes(gridcolor=GRID, title_standoff=8, **line)


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return at most ``most`` round values between two positive ones, evenly spread on a logarithmic axis."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 1.5, 2, 3, 4, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= most:
            return ticks
    return ticks[:: -(-len(ticks) // most)]


def _axis_range(values: np.ndarray, ticks: int = 8) -> dict[str, Any]:
    """Axis settings for values: logarithmic with round ticks where they span much, with a margin of 4 %."""
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if low > 0 and high / low > LOG_RATIO:
        margin = 0.04 * np.log10(high / low)
        ends = [float(np.log10(low) - margin), float(np.log10(high) + margin)]
        places = log_ticks(10 ** ends[0], 10 ** ends[1], ticks)
        return {"type": "log", "range": ends, "tickvals": places, "ticktext": [f"{p:,.6g}" for p in places]}
    margin = max(0.04 * (high - low), 0.002 * abs(high)) or 1.0
    return {"range": [float(low - margin), float(high + margin)], "nticks": ticks}


def _title(objective: Objective) -> str:
    return escape(bracketed(label(objective), objective.unit))


# --- Pareto panels -------------------------------------------------------------------------------------------------


def pareto_figure(panels: list[Scatter], chosen: pd.DataFrame, name: str) -> go.Figure:
    """Draw a panel for every pair of objectives: cloud, front, its edge, chosen designs and the baseline ``name``."""
    size = 1 + max(panel.row for panel in panels)
    across = {1: 0.0, 2: 0.13}.get(size, 0.16 / size)
    figure = make_subplots(rows=size, cols=size, horizontal_spacing=across, vertical_spacing=0.22 / size)
    for panel in panels:
        _draw_panel(figure, panel, chosen, name, size)
    _hide_empty(figure, panels, size)
    layout(figure, 560 if size == 1 else 400 * size + 40, t=30 if size > 1 else 60)
    figure.update_layout(legend=_corner_legend(size), barmode="overlay")
    return figure


def _draw_panel(figure: go.Figure, panel: Scatter, chosen: pd.DataFrame, name: str, size: int) -> None:
    place = {"row": panel.row + 1, "col": panel.column + 1}
    first, small = panel.row == panel.column == 0, size > 2
    traces = [_cloud(panel), _front(figure, panel, size), _edge(panel), _chosen(panel, chosen), _base(panel, name)]
    for trace in traces:
        if trace is not None:
            trace.legendgroup, trace.showlegend = trace.name, first
            figure.add_trace(trace, **place)
    both = [pd.concat([panel.cloud[o.name], panel.front[o.name], panel.baseline[o.name]]) for o in (panel.x, panel.y)]
    x, y = (_axis_range(column.to_numpy(dtype=float), ticks=4 if small else 8) for column in both)
    figure.update_xaxes(title_text=_title(panel.x), tickangle=0, **x, **place)
    figure.update_yaxes(title_text=None if small and panel.column else _title(panel.y), **y, **place)
    if len(panel.baseline) and (first or not small):
        _point_out(figure, panel, name, x, y)


def _columns(panel: Scatter, frame: pd.DataFrame, objectives: list[Objective]) -> np.ndarray:
    """What the hover shows of designs: axes then objectives, as small a type as holds them."""
    columns = [_plain(frame[a.name], a) for a in panel.axes] + [frame[o.name].to_numpy(dtype=float) for o in objectives]
    if any(column.dtype == object for column in columns):
        return np.stack([column.astype(object) for column in columns], axis=1)
    values = np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))
    small = values.size and (values == np.round(values)).all() and values.min() >= 0 and values.max() < 2**16
    return values.astype(np.uint16 if small else np.float32)


def _plain(column: pd.Series, axis: Axis) -> np.ndarray:
    words = axis.attribute.choices or axis.attribute.type == "bool"
    return np.array([escape(axis_value(v)) for v in column], dtype=object) if words else column.to_numpy(dtype=float)


def _hover(panel: Scatter, head: str, objectives: list[Objective], cloud: bool = False) -> str:
    """Hover text: the objectives (x and y from the place of the point in a cloud), then the design's axes."""
    count = len(panel.axes)
    if cloud:
        values = [(panel.x, "%{x:.4~g}"), (panel.y, "%{y:.4~g}")]
    else:
        values = [(o, f"%{{customdata[{count + i}]:.4~g}}") for i, o in enumerate(objectives)]
    lines = [f"<b>{escape(label(o))} {value} {escape(unit_text(o.unit))}</b>" for o, value in values]
    for i, axis in enumerate(panel.axes):
        words = axis.attribute.choices or axis.attribute.type == "bool"
        lines.append(f"{axis.name} %{{customdata[{i}]{'' if words else ':.6~g'}}} {unit_text(axis.unit)}")
    return "<br>".join([head, *lines]) + "<extra></extra>"


def _shown(panel: Scatter) -> list[Objective]:
    return list({o.name: o for o in (panel.x, panel.y, panel.colour) if o is not None}.values())


def _points(panel: Scatter, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    return {key: frame[o.name].to_numpy(dtype=np.float32) for key, o in (("x", panel.x), ("y", panel.y))}


def _cloud(panel: Scatter) -> go.Scatter:
    return go.Scatter(
        **_points(panel, panel.cloud),
        name=f"feasible designs ({panel.cloud_text})",
        mode="markers",
        marker={"size": 3 if len(panel.cloud) > 2000 else 5, "color": CLOUD_GREY, "opacity": 0.6},
        customdata=_columns(panel, panel.cloud, []),
        hovertemplate=_hover(panel, "feasible design", [], cloud=True),
    )


def _edge(panel: Scatter) -> go.Scatter:
    return go.Scatter(
        **_points(panel, panel.edge),
        name="best of these two objectives alone",
        mode="lines",
        line={"color": INK, "width": 1.2, "shape": "hv" if panel.x.sign > 0 else "vh"},
        hoverinfo="skip",
    )


def _front(figure: go.Figure, panel: Scatter, size: int) -> go.Scatter:
    marker: dict[str, Any] = {
        "size": 5 if len(panel.front) > 300 else 7,
        "color": EFFECT,
        "line": {"width": 0.4, "color": "white"},
    }
    if panel.colour is not None:
        marker |= _colour_by(figure, panel, panel.colour, size)
    return go.Scatter(
        **_points(panel, panel.front),
        name=f"Pareto set ({panel.front_text})",
        mode="markers",
        marker=marker,
        customdata=_columns(panel, panel.front, _shown(panel)),
        hovertemplate=_hover(panel, "Pareto design", _shown(panel)),
    )


def _colour_by(figure: go.Figure, panel: Scatter, colour: Objective, size: int) -> dict[str, Any]:
    """Marker settings that colour a front by an objective (logarithmic where it spans much), with a bar.

    The bar stands beside the panel; in a corner of many panels, all coloured alike, one lies in the empty corner.
    """
    values = panel.front[colour.name].to_numpy(dtype=float)
    scale = _axis_range(values)
    log = scale.get("type") == "log"
    ticks = {"tickvals": np.log10(scale["tickvals"]).tolist(), "ticktext": scale["ticktext"]} if log else {}
    marker = {"color": (np.log10(values) if log else values).astype(np.float32), "colorscale": "Viridis"}
    if size > 2:
        first = panel.row == panel.column == 0
        return marker | {"showscale": first, "colorbar": _corner_bar(colour, size) | ticks}
    subplot = figure.get_subplot(panel.row + 1, panel.column + 1)
    return marker | {"colorbar": _side_bar(colour, subplot.xaxis.domain[1], subplot.yaxis.domain) | ticks}


_BAR = {
    "thickness": 9,
    "outlinewidth": 0,
    "xpad": 0,
    "ypad": 0,
    "ticks": "outside",
    "ticklen": 3,
    "tickfont": {"size": 11},
}


def _side_bar(colour: Objective, right: float, height: tuple[float, float]) -> dict[str, Any]:
    bottom, top = height
    place = {"x": right + 0.006, "xanchor": "left", "y": (bottom + top) / 2, "len": top - bottom}
    return _BAR | place | {"title": {"text": _title(colour), "side": "right", "font": {"size": 11}}}


def _corner_bar(colour: Objective, size: int) -> dict[str, Any]:
    place = {"orientation": "h", "x": 1 - 0.92 / size, "xanchor": "left", "y": 0.85 / size, "len": 0.9 / size}
    return _BAR | place | {"title": {"text": f"colour: {_title(colour)}", "side": "top", "font": {"size": 11}}}


def _chosen(panel: Scatter, chosen: pd.DataFrame) -> go.Scatter | None:
    rows = chosen[chosen["letter"] != ""]
    if rows.empty:
        return None
    return go.Scatter(
        **_points(panel, rows),
        name="designs of the table above",
        mode="markers+text",
        text=rows["letter"].tolist(),
        textfont={"size": 10, "color": INK},
        textposition="middle center",
        marker={"size": 15, "color": "white", "line": {"width": 1.5, "color": INK}},
        customdata=_columns(panel, rows, _shown(panel)),
        hovertemplate=_hover(panel, "design %{text}", _shown(panel)),
    )


def _base(panel: Scatter, name: str) -> go.Scatter | None:
    if panel.baseline.empty:
        return None
    return go.Scatter(
        **_points(panel, panel.baseline),
        name=f"baseline: {escape(name)}",
        mode="markers",
        marker={"size": 15, "symbol": "diamond", "color": BASELINE, "line": {"width": 1.5, "color": "white"}},
        customdata=_columns(panel, panel.baseline, _shown(panel)),
        hovertemplate=_hover(panel, f"baseline: {escape(name)}", _shown(panel)),
    )


def _point_out(figure: go.Figure, panel: Scatter, name: str, x: dict, y: dict) -> None:
    """Write the baseline's name beside its diamond, on the worse side, where no front is."""
    place = [float(panel.baseline[o.name].iloc[0]) for o in (panel.x, panel.y)]
    where = [np.log10(v) if a.get("type") == "log" else v for v, a in zip(place, (x, y), strict=True)]
    figure.add_annotation(
        x=float(where[0]), y=float(where[1]), text=escape(name), row=panel.row + 1, col=panel.column + 1,
        ax=34 * panel.x.sign, ay=-38 * panel.y.sign, arrowcolor=BASELINE, arrowwidth=1.4, arrowhead=0, standoff=8,
        font={"color": BASELINE, "size": 12}, bgcolor="rgba(255,255,255,0.85)", borderpad=2,
        xanchor="left" if panel.x.sign > 0 else "right",
    )  # fmt: skip


def _hide_empty(figure: go.Figure, panels: list[Scatter], size: int) -> None:
    taken = {(panel.row + 1, panel.column + 1) for panel in panels}
    for row in range(1, size + 1):
        for column in range(1, size + 1):
            if (row, column) not in taken:
                figure.update_xaxes(visible=False, row=row, col=column)
                figure.update_yaxes(visible=False, row=row, col=column)


def _corner_legend(size: int) -> dict[str, Any]:
    """The legend stands in the empty corner, or above a single panel."""
    style = {"font": {"size": 12}, "itemsizing": "trace", "bgcolor": "rgba(0,0,0,0)"}
    if size == 1:
        return style | {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    return style | {"x": 1 - 0.92 / size, "y": (0.5 if size < 3 else 0.62) / size, "xanchor": "left",
                    "yanchor": "middle" if size < 3 else "top"}  # fmt: skip


def histogram_figure(frame: pd.DataFrame, objective: Objective, marks: list[tuple[str, float]]) -> go.Figure:
    """Draw how the feasible designs spread over a single objective, with the best and the baseline marked."""
    values = frame[objective.name].to_numpy(dtype=np.float32)
    hover = "%{x}: %{y} designs<extra></extra>"
    figure = go.Figure(go.Histogram(x=values, nbinsx=60, marker={"color": CLOUD_GREY}, hovertemplate=hover))
    for position, (text, value) in enumerate(marks):
        colour = BASELINE if position < len(marks) - 1 else EFFECT
        figure.add_vline(x=value, line={"color": colour, "width": 2})
        figure.add_annotation(
            x=value, y=1.0 + 0.07 * position, yref="paper", showarrow=False, font={"color": colour}, yanchor="bottom",
            text=f"{escape(text)} {escape(quantity(value, objective.unit))}",
        )  # fmt: skip
    figure.update_xaxes(title_text=_title(objective))
    figure.update_yaxes(title_text="feasible designs shown")
    layout(figure, 420, t=70)
    return figure


# --- Stall stacks --------------------------------------------------------------------------------------------------


def stacks_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw the time by cause [ms]: a panel a workload, a bar a design, baseline on top."""
    workloads, names = list(dict.fromkeys(frame["workload"])), list(dict.fromkeys(frame["name"]))
    columns = min(len(workloads), 2)
    rows = -(-len(workloads) // columns)
    titles = [f"<b>{escape(workload)}</b>" for workload in workloads]
    figure = make_subplots(rows=rows, cols=columns, shared_yaxes=True, horizontal_spacing=0.03,
                           vertical_spacing=0.3 / rows, subplot_titles=titles)  # fmt: skip
    figure.update_annotations(font_size=13)
    for number_, workload in enumerate(workloads):
        place = {"row": number_ // columns + 1, "col": number_ % columns + 1}
        part = frame[frame["workload"] == workload]
        for cause, bars in part.groupby("cause", sort=False):
            figure.add_trace(_bar(str(cause), bars), **place)
        _totals(figure, part, place)
        figure.update_xaxes(title_text="time of one run [ms]", rangemode="tozero", **place)
    figure.update_yaxes(categoryorder="array", categoryarray=[_bar_name(n) for n in reversed(names)])
    layout(figure, rows * (46 * len(names) + 90) + 26, l=20, t=52)
    figure.update_yaxes(ticks="", ticksuffix="  ", showline=False, showgrid=False, automargin=True)
    figure.update_layout(barmode="stack", bargap=0.32, showlegend=False, uniformtext={"minsize": 10, "mode": "hide"})
    return figure


def _bar_name(name: str) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(name, 32, drop_whitespace=False))


def _bar(cause: str, bars: pd.DataFrame) -> go.Bar:
    return go.Bar(
        x=bars["ms"].to_numpy(),
        y=[_bar_name(name) for name in bars["name"]],
        orientation="h",
        name=cause,
        marker={"color": CAUSE_COLOURS[cause], "line": {"width": 0.6, "color": "white"}},
        text=[f"{100 * share:.0f} %" if share >= 0.05 else "" for share in bars["share"]],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": INK if cause in LIGHT else "white", "size": 11},
        customdata=(100 * bars["share"]).to_numpy(),
        hovertemplate=f"{cause}: %{{x:.3~g}} ms, %{{customdata:.1f}} %<extra>%{{y}}</extra>",
    )


def _totals(figure: go.Figure, part: pd.DataFrame, place: dict[str, int]) -> None:
    """Write each bar's total behind its end, and leave room for it."""
    totals = part.groupby("name", sort=False)["ms"].sum()
    for name, total in totals.items():
        end = {"x": total, "y": _bar_name(str(name)), "xanchor": "left", "xshift": 4}
        figure.add_annotation(text=f"{number(total)} ms", showarrow=False, **end, **place)
    figure.update_xaxes(range=[0, 1.14 * float(totals.max())], **place)


# --- Effect of each axis -------------------------------------------------------------------------------------------

LINES = (
    ("at_baseline", "only this axis moved from the baseline", EFFECT, "solid", 6),
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


def _axis_grid(frame: pd.DataFrame, objectives: list[Objective], axes: list[Axis], baseline: pd.DataFrame,
               width: int) -> go.Figure:  # fmt: skip
    rows = len(objectives)
    figure = make_subplots(
        rows=rows, cols=width, shared_yaxes=True, horizontal_spacing=0.2 / max(width, 5), vertical_spacing=0.12 / rows
    )
    for row, objective in enumerate(objectives, start=1):
        all_values = frame[frame["objective"] == objective.name][["at_baseline", "best", "median"]].to_numpy(
            dtype=float
        )
        figure.update_yaxes(row=row, **_axis_range(all_values.ravel(), ticks=5))
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


def _effect(figure: go.Figure, part: pd.DataFrame, objective: Objective, axis: Axis, baseline: pd.DataFrame,
            place: tuple[int, int]) -> None:  # fmt: skip
    """One small panel: three lines, and the baseline's diamond where it lies on the axis."""
    row, column = place
    words = bool(axis.attribute.choices) or axis.attribute.type == "bool"
    at = [escape(text) for text in part["at"]] if words else part["number"].to_numpy(dtype=float)
    first = row == column == 1
    hover = f"{axis.name} %{{x}} {unit_text(axis.unit)}<br>%{{y:.4~g}} {escape(unit_text(objective.unit))}"
    for key, name, colour, dash, size in LINES:
        if part[key].isna().all():
            continue
        figure.add_trace(go.Scatter(
            x=at, y=part[key].to_numpy(dtype=float), name=name, legendgroup=key, showlegend=first, mode="lines+markers",
            line={"color": colour, "width": 2 if size else 1.5, "dash": dash},
            marker={"size": size or (6 if words else 3), "color": colour},
            hovertemplate=f"{hover}<extra>{name}</extra>",
        ), row=row, col=column)  # fmt: skip
    if len(baseline):
        here = baseline[axis.name].iloc[0]
        figure.add_trace(go.Scatter(
            x=[escape(axis_value(here)) if words else float(here)], y=[float(baseline[objective.name].iloc[0])],
            name="baseline", legendgroup="base", showlegend=first, mode="markers",
            marker={"symbol": "diamond", "size": 10, "color": BASELINE, "line": {"width": 1, "color": "white"}},
            hovertemplate=f"baseline {axis.name} %{{x}}<br>%{{y:.4~g}}<extra></extra>",
        ), row=row, col=column)  # fmt: skip
    settings = {"type": "category"} if words else _few_ticks(axis, baseline)
    last = row == len(figure._grid_ref)
    unit = unit_text(axis.unit)
    title = f"{axis.name}<br><span style='color:{GREY}'>[{unit}]</span>" if unit else axis.name
    figure.update_xaxes(title_text=title if last else None, title_font_size=11, showticklabels=last, **settings,
                        row=row, col=column)  # fmt: skip


def _few_ticks(axis: Axis, baseline: pd.DataFrame) -> dict[str, Any]:
    """Ticks at an axis's ends and at the baseline: what fits a small panel."""
    settings = _axis_range(np.asarray([*axis.numbers, *baseline[axis.name].astype(float)]))
    low, high = settings["range"]
    place = np.log10 if settings.get("type") == "log" else float
    ticks = [min(axis.numbers), max(axis.numbers)]
    for value in baseline[axis.name].astype(float):
        if all(abs(place(value) - place(tick)) > 0.22 * (high - low) for tick in ticks):
            ticks.append(float(value))
    kept = {key: value for key, value in settings.items() if key != "nticks"}
    return kept | {"tickvals": ticks, "ticktext": [axis_value(tick) for tick in ticks], "tickangle": 0}
