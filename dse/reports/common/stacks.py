"""The drawing of stacks: a bar a design, cut by cause of time or by consumer of power."""

import textwrap
from html import escape
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import CAUSE_COLOURS, INK, LIGHT, layout
from dse.reports.common.words import number
from dse.reports.sweep.data import REST


class Stacked(NamedTuple):
    """A kind of stack, and how it is drawn."""

    part: str  # column of a part's name
    size: str  # column of its size
    unit: str
    title: str  # of the axis
    colours: dict[str, str]  # part -> colour
    light: set[str]  # parts whose colour takes dark text


TIME = Stacked("cause", "ms", "ms", "time of one run [ms]", CAUSE_COLOURS, LIGHT)

COMPONENT_COLOURS = {
    "constant": "#8C8C8C",
    "static": "#BBBBBB",
    "idle_sm": "#DDDDDD",
    "idle_units": "#CFC8E0",
    "instruction": "#88CCEE",
    "pipeline": "#44AA99",
    "register_file": "#117733",
    "int32": "#B4DE2C",
    "fp32": "#999933",
    "fp64": "#6B6B23",
    "sfu": "#DDCC77",
    "tensor": "#332288",
    "texture": "#E8A0BF",
    "shared_memory": "#CC79A7",
    "l1": "#AA4499",
    "constant_cache": "#D8BFD8",
    "l2": "#882255",
    "noc": "#6699CC",
    "dram": "#CC6677",
    "interconnect": "#661100",
    REST: "#EFEFEF",
}
"""Consumer of power -> colour."""

POWER = Stacked(
    "component",
    "watts",
    "W",
    "mean board power [W]",
    COMPONENT_COLOURS,
    {"static", "idle_sm", "idle_units", "instruction", "int32", "sfu", "texture", "constant_cache", REST},
)


def stacks_figure(frame: pd.DataFrame, stacked: Stacked = TIME) -> go.Figure:
    """Draw the time by cause [ms], or another stack: a panel a workload, a bar a design, baseline on top."""
    workloads, names = list(dict.fromkeys(frame["workload"])), list(dict.fromkeys(frame["name"]))
    columns = min(len(workloads), 2)
    rows = -(-len(workloads) // columns)
    titles = [f"<b>{escape(workload)}</b>" for workload in workloads]
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.3 / rows,
        subplot_titles=titles,
    )
    figure.update_annotations(font_size=13)
    for number_, workload in enumerate(workloads):
        place = {"row": number_ // columns + 1, "col": number_ % columns + 1}
        part = frame[frame["workload"] == workload]
        for name, bars in part.groupby(stacked.part, sort=False):
            figure.add_trace(_bar(str(name), bars, stacked), **place)
        _totals(figure, part, stacked, place)
        figure.update_xaxes(title_text=stacked.title, rangemode="tozero", **place)
    figure.update_yaxes(categoryorder="array", categoryarray=[_bar_name(n) for n in reversed(names)])
    layout(figure, rows * (46 * len(names) + 90) + 26, l=20, t=52)
    figure.update_yaxes(ticks="", ticksuffix="  ", showline=False, showgrid=False, automargin=True)
    figure.update_layout(barmode="stack", bargap=0.32, showlegend=False, uniformtext={"minsize": 10, "mode": "hide"})
    return figure


def _bar_name(name: str) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(name, 32, drop_whitespace=False))


def _bar(name: str, bars: pd.DataFrame, stacked: Stacked) -> go.Bar:
    return go.Bar(
        x=bars[stacked.size].to_numpy(),
        y=[_bar_name(design) for design in bars["name"]],
        orientation="h",
        name=name,
        marker={"color": stacked.colours[name], "line": {"width": 0.6, "color": "white"}},
        text=[f"{100 * share:.0f} %" if share >= 0.05 else "" for share in bars["share"]],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": INK if name in stacked.light else "white", "size": 11},
        customdata=(100 * bars["share"]).to_numpy(),
        hovertemplate=f"{name}: %{{x:.3~g}} {stacked.unit}, %{{customdata:.1f}} %<extra>%{{y}}</extra>",
    )


def _totals(figure: go.Figure, part: pd.DataFrame, stacked: Stacked, place: dict[str, int]) -> None:
    """Write each bar's total behind its end, and leave room for it."""
    totals = part.groupby("name", sort=False)[stacked.size].sum()
    for name, total in totals.items():
        end = {"x": total, "y": _bar_name(str(name)), "xanchor": "left", "xshift": 4}
        figure.add_annotation(text=f"{number(total)} {stacked.unit}", showarrow=False, **end, **place)
    figure.update_xaxes(range=[0, 1.14 * float(totals.max())], **place)
