"""The drawings of a page of ``dse validate``, from the data of :mod:`dse.reports.validate.data`."""

from html import escape
from math import ceil

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.measured.throttling import HELD
from dse.reports.common.figures import BASELINE, BEST, CAUSE_COLOURS, EFFECT, GREY, INK, LIGHT, layout
from dse.reports.common.ticks import axis_range
from dse.reports.common.time_units import TimeUnit, fitting_unit, row_unit
from dse.reports.common.words import number
from dse.validation.worst_rows import OVERHEAD, QUANTISING

COLOURS = (EFFECT, BASELINE, BEST, "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#332288", "#777777",
           "#117733", "#AA4499")  # fmt: skip
"""Colours of operators, then of devices, in order of their names."""

PART_COLOURS = CAUSE_COLOURS | {OVERHEAD: "#4F4F4F", QUANTISING: "#B5651D", HELD: "#C00000"}

MOST_COLUMNS = 3
"""Panels in a row."""

NEAR = 1.2
"""Dashed lines: predicted a fifth too long, and as much too short."""

PANEL = 330
"""Height of a panel [px]."""

LEGEND = {
    "x": 1.01,
    "y": 1,
    "xanchor": "left",
    "yanchor": "top",
    "itemsizing": "constant",
    "tracegroupgap": 1,
    "font": {"size": 11.5},
}


def scatter_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw predicted over measured time, a panel a device, a colour an operator and data type; in a unit that fits."""
    unit = fitting_unit(frame["measured_us"])
    frame = _in(frame, unit)
    every = np.r_[frame["measured"], frame["predicted"]]
    low, high = float(every.min()) / NEAR, float(every.max()) * NEAR  # the lines show beside a single row, too
    ends = axis_range(np.array([low, high]), 7)
    figure, places = _panels(frame)
    for place in places.values():
        for factor, dash in ((1.0, "solid"), (NEAR, "dot"), (1 / NEAR, "dot")):
            figure.add_scatter(
                x=[low, high],
                y=[low * factor, high * factor],
                mode="lines",
                hoverinfo="skip",
                line={"color": GREY, "width": 1, "dash": dash},
                showlegend=False,
                **place,
            )
    _dots(figure, frame, places, "predicted")
    figure.update_xaxes(**ends)
    figure.update_yaxes(**ends)
    return _titled(figure, places, f"measured [{unit.name}]", f"predicted [{unit.name}]")


def ratio_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw predicted over measured against measured time, panels, colours and unit as in the scatter."""
    unit = fitting_unit(frame["measured_us"])
    frame = _in(frame, unit)
    figure, places = _panels(frame)
    for place in places.values():
        for ratio, dash in ((1.0, "solid"), (NEAR, "dot"), (1 / NEAR, "dot")):
            line = {"color": GREY, "width": 1, "dash": dash}
            figure.add_hline(y=ratio, line=line, exclude_empty_subplots=False, **place)
    _dots(figure, frame, places, "ratio")
    figure.update_xaxes(**axis_range(frame["measured"].to_numpy(), 7))
    figure.update_yaxes(**_ratio_axis(frame["ratio"].to_numpy()))
    return _titled(figure, places, f"measured [{unit.name}]", "predicted / measured")


def shape_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw predicted over measured against each number of a shape: medians and 80 % bands, a colour a series."""
    columns, names = list(dict.fromkeys(frame["column"])), sorted(set(frame["series"]))
    wide = min(MOST_COLUMNS, len(columns))
    high = ceil(len(columns) / wide)
    figure = make_subplots(
        rows=high, cols=wide, shared_yaxes=True, horizontal_spacing=0.03, vertical_spacing=0.24 / high
    )
    named: set[str] = set()
    for i, column in enumerate(columns):
        place = {"row": i // wide + 1, "col": i % wide + 1}
        figure.add_hline(y=1.0, line={"color": GREY, "width": 1}, exclude_empty_subplots=False, **place)
        part = frame[frame["column"] == column]
        for j, name in enumerate(names):
            _band(figure, part[part["series"] == name], COLOURS[j % len(COLOURS)], name not in named, place)
        named |= set(part["series"])
        figure.update_xaxes(title_text=escape(column), tickangle=0, **axis_range(part["value"].to_numpy(), 6), **place)
    figure.update_yaxes(**_ratio_axis(np.r_[frame["low"], frame["high"]]))
    figure.update_yaxes(title_text="predicted / measured", col=1)
    layout(figure, 270 * high + 60, t=36)
    return figure.update_layout(legend=LEGEND)


def _band(figure: go.Figure, part: pd.DataFrame, colour: str, named: bool, place: dict[str, int]) -> None:
    if part.empty:
        return
    binned = bool((part["n"] > 1).any())
    name, group = escape(str(part["series"].iloc[0])), {"legendgroup": str(part["series"].iloc[0])}
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    if binned:
        figure.add_scatter(
            x=[*part["value"], *part["value"][::-1]],
            y=[*part["low"], *part["high"][::-1]],
            fill="toself",
            mode="lines",
            fillcolor=f"rgba({red},{green},{blue},0.13)",
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            **group,
            **place,
        )
    figure.add_scatter(
        x=part["value"],
        y=part["middle"],
        mode="lines+markers" if binned else "markers",
        name=name,
        showlegend=named,
        customdata=part["n"],
        line={"color": colour, "width": 2},
        marker={"size": 5},
        **group,
        **place,
        hovertemplate=f"{name}: %{{y:.3f}} at %{{x:,.6~g}} (%{{customdata}} rows)<extra></extra>",
    )


def worst_stacks_figure(frame: pd.DataFrame) -> go.Figure:
    """Draw the stacks of single rows as shares of the longer of predicted and measured time, which a mark shows."""
    rows = frame.drop_duplicates("place").sort_values("place")
    names = {
        r["place"]: f"<b>{r['place'] + 1}</b> {escape(r['name'])}\u2002<br>{escape(r['shape'])}"
        for r in rows.to_dict("records")
    }
    units = {r["place"]: row_unit(r["measured_us"], r["predicted_us"]) for r in rows.to_dict("records")}
    figure = go.Figure()
    for part in (p for p in PART_COLOURS if p in set(frame["part"])):
        bars = frame[frame["part"] == part]
        parts = [(units[place], us) for place, us in zip(bars["place"], bars["us"], strict=True)]
        sizes = [_size(*part, share) for part, share in zip(parts, bars["share"], strict=True)]
        figure.add_bar(
            x=bars["share"],
            y=[names[p] for p in bars["place"]],
            orientation="h",
            name=part,
            customdata=[unit.text(us) for unit, us in parts],
            marker={"color": PART_COLOURS[part], "line": {"width": 0.6, "color": "white"}},
            textposition="inside",
            text=sizes,
            textfont={"color": INK if part in LIGHT else "white", "size": 11},
            textangle=0,
            insidetextanchor="middle",
            hovertemplate=f"{part}: %{{customdata}}<extra>%{{y}}</extra>",
        )
    longer = rows[["measured_us", "predicted_us"]].max(axis=1)
    figure.add_scatter(
        x=rows["measured_us"] / longer,
        y=[names[p] for p in rows["place"]],
        mode="markers",
        name="measured",
        marker={"symbol": "line-ns", "size": 24, "line": {"color": INK, "width": 3}},
        customdata=[units[r["place"]].text(r["measured_us"]) for r in rows.to_dict("records")],
        hovertemplate="measured %{customdata}<extra>%{y}</extra>",
    )
    for row in rows.to_dict("records"):
        unit = units[row["place"]]
        text = f"{unit.text(row['predicted_us'])} for {unit.text(row['measured_us'])}: × {row['ratio']:.2f}"
        figure.add_annotation(x=1.02, y=names[row["place"]], text=text, showarrow=False, xanchor="left")
    figure.update_yaxes(categoryorder="array", categoryarray=[names[p] for p in rows["place"]][::-1])
    figure.update_xaxes(
        title_text="share of the longer of predicted and measured time",
        range=[0, 1.42],
        tickvals=[0, 0.25, 0.5, 0.75, 1.0],
    )
    layout(figure, 40 * len(rows) + 90, l=20)
    figure.update_yaxes(ticks="", ticksuffix="  ", showline=False, showgrid=False, automargin=True)
    return figure.update_layout(barmode="stack", bargap=0.3, showlegend=False)


def _in(frame: pd.DataFrame, unit: TimeUnit) -> pd.DataFrame:
    """The points with ``measured`` and ``predicted`` in a unit."""
    return frame.assign(measured=frame["measured_us"] / unit.us, predicted=frame["predicted_us"] / unit.us)


def _size(unit: TimeUnit, us: float, share: float) -> str:
    """What stands in a bar: its time in the unit of its row; nothing where it would not fit."""
    text = number(us / unit.us)
    return text if share >= 0.012 * len(text) else ""


def _panels(frame: pd.DataFrame) -> tuple[go.Figure, dict[str, dict[str, int]]]:
    """A panel a device, the axes shared."""
    devices = sorted(set(frame["device"]))
    wide = min(MOST_COLUMNS, len(devices))
    high = ceil(len(devices) / wide)
    titles = [f"<b>{escape(d)}</b>" for d in devices]
    figure = make_subplots(
        rows=high,
        cols=wide,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.26 / high,
        subplot_titles=titles,
    )
    figure.update_annotations(font_size=13)
    return figure, {d: {"row": i // wide + 1, "col": i % wide + 1} for i, d in enumerate(devices)}


def _dots(figure: go.Figure, frame: pd.DataFrame, places: dict[str, dict[str, int]], y: str) -> None:
    named: set[str] = set()
    kinds = sorted(set(frame["kind"]))
    for (device, kind), part in frame.groupby(["device", "kind"], sort=True):
        units = [row_unit(*pair) for pair in zip(part["measured_us"], part["predicted_us"], strict=True)]
        texts = [
            [unit.text(m), unit.text(p), r]
            for unit, m, p, r in zip(units, part["measured_us"], part["predicted_us"], part["ratio"], strict=True)
        ]
        figure.add_scatter(
            x=part["measured"],
            y=part[y],
            mode="markers",
            name=escape(str(kind)),
            legendgroup=str(kind),
            showlegend=kind not in named,
            customdata=texts,
            text=[escape(s) for s in part["shape"]],
            marker={"size": 4.5, "color": COLOURS[kinds.index(kind) % len(COLOURS)], "opacity": 0.55},
            hovertemplate=f"{escape(str(kind))}, %{{text}}<br>measured %{{customdata[0]}}, predicted "
            "%{customdata[1]} (× %{customdata[2]:.3f})<extra></extra>",
            **places[str(device)],
        )
        named.add(str(kind))


def _titled(figure: go.Figure, places: dict[str, dict[str, int]], x: str, y: str) -> go.Figure:
    """Titles at the outer axes, the legend above."""
    high = max(p["row"] for p in places.values())
    for place in places.values():
        lowest = {"row": place["row"] + 1, "col": place["col"]} not in places.values()
        figure.update_xaxes(title_text=x if lowest else "", **place)
    figure.update_yaxes(title_text=y, col=1)
    layout(figure, PANEL * high + 90, t=56)
    return figure.update_layout(legend=LEGEND)


def _ratio_axis(ratio: np.ndarray) -> dict:
    """A logarithmic axis of ratios around 1, wide enough for all of them."""
    most = max(float(np.abs(np.log(ratio)).max()), np.log(1.25)) * 1.05
    steps = (1.1, 1.2, 1.5) if most < np.log(1.8) else (1.2, 1.5, 2, 3) if most < np.log(5) else (2, 5, 10, 30, 100)
    ticks = [t for s in steps for t in (s, 1 / s) if abs(np.log(t)) <= most]
    ticks = sorted([1.0, *ticks])
    return {
        "type": "log",
        "range": [-most / np.log(10), most / np.log(10)],
        "tickvals": ticks,
        "ticktext": [f"{t:.2g}" for t in ticks],
    }
