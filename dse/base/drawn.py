"""Results that can be drawn: the figures of their pages, by name."""

from importlib import import_module
from typing import Any

DRAWING = "dse.reports.figure"
"""Module that draws: loaded on first use, since it stands above all results."""


class Drawn:
    """A result with figures."""

    def figure(self, name: str = "") -> Any:
        """Return a figure of the result's page, of plotly's; without a name the first of :meth:`figure_names`.

        Raises InputError where the result has none of this name.
        """
        return import_module(DRAWING).figure(self, name)

    def figure_names(self) -> list[str]:
        """Return the names of the result's figures."""
        return import_module(DRAWING).figure_names(self)
