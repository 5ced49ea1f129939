"""The tornado of assumed numbers: what both ends of each range make of the objectives, design by design."""

import textwrap
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dse.explanation.assumed_effects import AssumedEffects
from dse.grid.result import SweepResult
from dse.reports.common.figures import BASELINE
from dse.reports.common.figures_tornado import Tornado
from dse.reports.common.words import capital, label, number, unit_text
from dse.reports.sweep.assumed import MOST, number_text, value_text
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.design_explanations import design_name
from dse.reports.sweep.figures_explanations import DESIGN_COLOURS

MOST_PANELS = 3
"""Panels in a row."""

TOP = 104
"""Room above the panels [px]: two rows of a legend, titles."""

PALE = 0.45
"""Opacity of the bar of a range's low end."""


def assumed_figure(result: SweepResult, effects: AssumedEffects) -> go.Figure:
    """Draw the change of each objective [%] at both ends of the ranges: a panel an objective, a pair of bars a design.

    Pale at the low end, full at the high one.
    """
    panels = list(result.space.objectives)
    places = effects.deciding(MOST)
    designs = effects.effects["design"].nunique()
    tornado = Tornado([label(o) for o in panels], MOST_PANELS, (11 * designs + 18) * len(places), TOP)
    figure = tornado.figure()
    frame = effects.effects[effects.effects["number"].isin(places)]
    names = {place: _name(effects, place) for place in places}
    changes = 100 * (frame[["at_low", "at_high"]].div(frame["nominal"], axis=0) - 1)
    for n, objective in enumerate(panels):
        part = frame[frame["objective"] == objective.name]
        for trace in _bars(result, part, changes, names, n == 0):
            figure.add_trace(trace, **tornado.place(n))
        reach = 1.1 * max(float(np.nanmax(np.abs(changes.loc[part.index].to_numpy()), initial=0.0)), 0.1)
        tornado.scaled(figure, n, "change [%]", reach)
    return tornado.finished(figure, [names[p] for p in places])


def _name(effects: AssumedEffects, place: int) -> str:
    """A number with the ends of its range, in lines."""
    one = effects.numbers[place]
    lines = [escape(line) for line in textwrap.wrap(capital(number_text(one)), 30)]
    low, high = value_text(one, one.low, False), value_text(one, one.high)
    return "<br>".join([*lines, f"<i>{escape(f'{low} to {high}')}</i>"])


def _bars(
    result: SweepResult, part: pd.DataFrame, changes: pd.DataFrame, names: dict[int, str], legend: bool
) -> list[go.Bar]:
    """The bars of one objective: two a design."""
    chosen = chosen_designs(result)
    titles = dict(
        zip(chosen["letter"].replace("", "base"), [design_name(r) for _, r in chosen.iterrows()], strict=True)
    )
    designs = [name for name in dict.fromkeys(part["design"]) if name in titles]
    colours = iter(DESIGN_COLOURS)
    bars = []
    for design in designs:
        mine = part[part["design"] == design]
        colour = BASELINE if design == "base" else next(colours)
        for end in ("low", "high"):
            about = [mine[f"at_{end}"].map(number), mine["nominal"].map(number), mine["objective_unit"].map(unit_text)]
            bars.append(
                go.Bar(
                    x=changes.loc[mine.index, f"at_{end}"].to_numpy(dtype=float),
                    y=[names[int(p)] for p in mine["number"]],
                    orientation="h",
                    name=escape(titles[design]),
                    legendgroup=design,
                    offsetgroup=design,
                    marker={"color": colour, "opacity": PALE if end == "low" else 1.0, "line": {"width": 0}},
                    showlegend=legend and end == "high",
                    customdata=np.stack([*about, mine[end].map(lambda v: f"{v:.4g}")], axis=1),
                    hovertemplate="at %{customdata[3]}: %{customdata[0]} %{customdata[2]} and not %{customdata[1]} "
                    "(%{x:+.1f} %)<extra>%{fullData.name}</extra>",
                )
            )
    return bars
