"""The figures of the ablation: CPI stacks of measured kernels and of traces, and errors by tokens.

Each draws a table that ``measured`` or ``shared_traces`` made.
"""

from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from measured import DEVICES, TOKEN_NAMES
from plotly.subplots import make_subplots
from shared_traces import IDLE, TRACE_CAUSES

from dse.reports.common.figures import CAUSE_COLOURS, FONT, INK, figure_html, plotly_script
from dse.timing.timing import CAUSES

COLOURS = CAUSE_COLOURS | {IDLE: "#E6E6E6"}
LINES = {
    "gcom": "#D55E00",
    "+ tensor core": "#E69F00",
    "+ launch": "#CC79A7",
    "amali as printed": "#56B4E9",
    "amali": "#0072B2",
    "mdm": "#666666",
}
"""Colours of the variants that differ (``+ divergence`` costs what ``gcom`` does)."""

PANELS = [("gemm", "prefill"), ("gemm", "decode"), ("elementwise", "prefill"), ("elementwise", "decode")]


def _styled(figure: go.Figure, height: int, title: str) -> go.Figure:
    figure.update_layout(
        title={"text": title, "font": {"size": 14}, "x": 0.01},
        barmode="stack",
        height=height,
        width=1100,
        margin={"l": 60, "r": 20, "t": 80, "b": 110},
        font={"family": FONT, "size": 11, "color": INK},
        paper_bgcolor="white",
        plot_bgcolor="white",
        legend={"traceorder": "normal"},
    )
    figure.update_yaxes(gridcolor="#E8E8E8", rangemode="tozero")
    figure.update_xaxes(tickangle=-60, showline=True, linecolor="#666666")
    return figure


def _rows(table: pd.DataFrame, **keys: str) -> pd.DataFrame:
    for column, value in keys.items():
        table = table[table[column] == value]
    return table


def _bars(figure: go.Figure, table: pd.DataFrame, causes: list[str], row: int, column: int, first: bool) -> None:
    for cause in causes:
        figure.add_trace(
            go.Bar(
                x=table["variant"],
                y=table[cause],
                name=cause,
                legendgroup=cause,
                showlegend=first,
                marker={"color": COLOURS[cause]},
            ),
            row=row,
            col=column,
        )


def measured_figure(stacks: pd.DataFrame) -> go.Figure:
    """Draw the stacks over measured time (``measured.stacks``): a row a device, a column a kind and phase."""
    devices = [device for device in DEVICES if device in set(stacks["device"])]
    names = [f"{device[:4]} {kind}, {phase}" for device in devices for kind, phase in PANELS]
    figure = make_subplots(
        len(devices),
        len(PANELS),
        subplot_titles=names,
        shared_xaxes=True,
        shared_yaxes="all",
        vertical_spacing=0.08,
        horizontal_spacing=0.03,
    )
    used = [cause for cause in CAUSES if stacks[cause].max() > 1e-3]
    for row, device in enumerate(devices, 1):
        for column, (kind, phase) in enumerate(PANELS, 1):
            part = _rows(stacks, device=device, kind=kind, phase=phase)
            _bars(figure, part, used, row, column, (row, column) == (1, 1))
            figure.add_hline(1.0, line={"color": INK, "dash": "dot", "width": 1}, row=row, col=column)
    return _styled(
        figure, 380 * len(devices), "Predicted CPI over measured CPI by cause, mean of the kernels (1: right)"
    )


def traces_figure(table: pd.DataFrame) -> go.Figure:
    """Draw the stacks of traces (``shared_traces.study``) as cycles an instruction of the representative warp."""
    names = list(dict.fromkeys(table["case"]))
    per_row = 4
    lines = -(-len(names) // per_row)
    figure = make_subplots(
        lines, per_row, subplot_titles=names, shared_xaxes=True, vertical_spacing=0.1, horizontal_spacing=0.05
    )
    causes = list(TRACE_CAUSES)
    cpi = table.assign(**{cause: table[cause] / table["instructions"] for cause in causes})
    used = [cause for cause in causes if cpi[cause].max() > 0]
    for i, name in enumerate(names):
        _bars(figure, cpi[cpi["case"] == name], used, i // per_row + 1, i % per_row + 1, i == 0)
    return _styled(figure, 380 * lines, "Traces on GCoM's RTX 2060: cycles an instruction of the representative warp")


def errors_figure(errors: pd.DataFrame) -> go.Figure:
    """Draw the MAPE by tokens (``measured.errors`` by device, kind and bin): a row a device, a column a kind."""
    devices, kinds = list(dict.fromkeys(errors["device"])), ["gemm", "elementwise"]
    titles = [f"{device[:4]} {kind}" for device in devices for kind in kinds]
    figure = make_subplots(len(devices), len(kinds), subplot_titles=titles, shared_xaxes=True, vertical_spacing=0.1)
    for row, device in enumerate(devices, 1):
        for column, kind in enumerate(kinds, 1):
            for variant, colour in LINES.items():
                part = _rows(errors, device=device, kind=kind, variant=variant).set_index("bin").reindex(TOKEN_NAMES)
                line = go.Scatter(
                    x=part.index,
                    y=part["mape"],
                    name=variant,
                    legendgroup=variant,
                    mode="lines+markers",
                    line={"color": colour},
                    showlegend=(row, column) == (1, 1),
                )
                figure.add_trace(line, row=row, col=column)
    figure.update_xaxes(title="tokens (up to 64: batch of a decode step; from 128: prompt)", row=len(devices))
    return _styled(figure, 340 * len(devices), "Mean absolute error [%] by tokens")


def write_page(path: Path, figures: dict[str, go.Figure]) -> None:
    """Write the figures as one HTML file that needs nothing else."""
    body = "\n".join(figure_html(figure, name) for name, figure in figures.items())
    path.write_text(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>002: AMALI\'s ablation</title>\n'
        f"<script>{plotly_script()}</script>\n</head>\n<body>\n{body}\n</body>\n</html>\n",
        encoding="utf-8",
        newline="\n",
    )
