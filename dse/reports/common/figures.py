"""What every drawing shares: colours, fonts, axes with round ticks, and plotly; only figures*.py import plotly."""

from html import escape
from pathlib import Path

import plotly.graph_objects as go
import plotly.io as pio

from dse.reports.common.words import bracketed, label
from dse.reports.sweep.data import REST
from dse.space.space import Objective
from dse.timing.timing import HOST

INK, GREY, GRID, CLOUD_GREY, REFUSED_GREY = "#222222", "#666666", "#E8E8E8", "#C9CED6", "#A3AAB5"
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
    "die_link": "#3D7EA6",
    "interconnect": "#661100",
    HOST: "#6F6F6F",
    REST: "#E6E6E6",
}
"""Cause -> colour, the same in every figure (P. Tol's colour-blind-safe set)."""

LIGHT = {"selected", "short_scoreboard", "lg_throttle", REST}
"""Causes whose colour takes dark text."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}


def plotly_script() -> str:
    """Return the text of plotly.js, its bundle of dots, lines and bars, for one script element a page."""
    return (Path(__file__).parent / "plotly_basic" / "plotly-basic.min.js").read_text(encoding="utf-8")


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


def axis_title(objective: Objective) -> str:
    """Return an objective's words and unit as the title of an axis, escaped."""
    return escape(bracketed(label(objective), objective.unit))
