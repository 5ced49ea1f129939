"""Panels of horizontal bars side by side, which share their names: the frame of every tornado."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dse.reports.common.figures import GREY, layout

BETWEEN = 84
"""Room between two rows of panels [px]: ticks, an axis' title, the next row's titles."""


@dataclass(frozen=True)
class Tornado:
    """A figure with a panel for each of ``titles``; ``of_panels`` [px] is the height of one, ``top`` the room above.

    At most ``columns`` panels stand in a row.
    """

    titles: Sequence[str]
    columns: int
    of_panels: int
    top: int

    @property
    def rows(self) -> int:
        """Rows of panels."""
        return -(-len(self.titles) // self._columns)

    @property
    def height(self) -> int:
        """Height of the figure [px]."""
        return self.rows * (self.of_panels + BETWEEN) + self.top

    @property
    def _columns(self) -> int:
        return min(len(self.titles), self.columns)

    def figure(self) -> go.Figure:
        """Return the empty figure."""
        figure = make_subplots(
            rows=self.rows,
            cols=self._columns,
            shared_yaxes=True,
            horizontal_spacing=0.025,
            vertical_spacing=BETWEEN / (self.height - self.top) if self.rows > 1 else 0,
            subplot_titles=[f"<b>{escape(title)}</b>" for title in self.titles],
        )
        return figure.update_annotations(font_size=13)

    def place(self, panel: int) -> dict[str, int]:
        """Return the row and the column of a panel."""
        return {"row": panel // self._columns + 1, "col": panel % self._columns + 1}

    def scaled(self, figure: go.Figure, panel: int, title: str, reach: float) -> None:
        """Give a panel an axis from -``reach`` to ``reach`` [%], with its title where no panel stands below."""
        lowest = panel + self._columns >= len(self.titles)
        figure.update_xaxes(title_text=title if lowest else None, range=[-reach, reach], nticks=7, **self.place(panel))

    def finished(self, figure: go.Figure, names: Sequence[str], **style: Any) -> go.Figure:
        """Return the figure with the bars' ``names`` in order, its legend above the panels' titles, and a ``style``."""
        layout(figure, self.height, l=20, t=self.top)
        figure.update_yaxes(categoryorder="array", categoryarray=list(names), autorange="reversed")
        figure.update_yaxes(ticks="", ticksuffix="  ", showgrid=False, showline=False, automargin=True)
        figure.update_xaxes(zeroline=True, zerolinecolor=GREY, zerolinewidth=1)
        return figure.update_layout(barmode="group", bargap=0.25, legend=legend_above(self.height, self.top), **style)


def legend_above(height: int, top: int) -> dict[str, Any]:
    """Return a legend above the panels' titles, whatever the ``height`` of figure and the room ``top`` above [px]."""
    style = {"orientation": "h", "x": 0, "yanchor": "bottom", "itemsizing": "constant", "font": {"size": 12}}
    return style | {"y": 1 + 26 / (height - top - 50)}
