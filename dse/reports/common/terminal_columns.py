"""A table of the terminal whose columns fit the window: what has no room beside the rest stands in a table below."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2
"""Blank columns between two columns of a table."""


@dataclass
class Column:
    """A column: header and unit, its cells as styled text, and whether it may stand in a table below."""

    name: str
    unit: str
    cells: list[Text]
    optional: bool = False

    @property
    def content(self) -> int:
        """Width of the widest cell."""
        return max((cell.cell_len for cell in self.cells), default=0)

    @property
    def narrowest(self) -> int:
        """The least width: no number is cut, and no part of the header's name."""
        return max(
            [self.content, *(len(part) for part in _parts(self.name)), *(len(part) for part in _parts(self.unit))]
        )


def print_table(columns: Sequence[Column], console: Console) -> None:
    """Print columns, the first of which names the rows, within the console's width.

    Where it is too narrow, optional ones follow in a table of their own; rows without a name are numbered in both.
    """
    names, *rest = columns
    shown, below = list(rest), list[Column]()
    while _width([c.narrowest for c in (names, *shown)]) > console.width and any(c.optional for c in shown):
        last = max(i for i, c in enumerate(shown) if c.optional)
        below.insert(0, shown.pop(last))
    if below:
        cells = [cell if cell.plain else Text(str(number)) for number, cell in enumerate(names.cells)]
        names = Column(names.name, names.unit, cells)
    console.print(_table([names, *shown], console.width))
    if below:
        console.print()
        print_table([names, *below], console)


def _table(columns: Sequence[Column], room: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False)
    for column, width in zip(columns, _widths(columns, room), strict=True):
        header = Text("\n".join(wrapped(column.name, width)))
        if column.unit:
            header.append("\n" + "\n".join(wrapped(column.unit, width)), style="not bold dim")
        table.add_column(
            header,
            justify="right" if column.name else "left",
            no_wrap=not column.name,
            min_width=width,
            vertical="bottom",
        )
    for row in zip(*(c.cells for c in columns), strict=True):
        table.add_row(*row)
    return table


def _width(widths: list[int]) -> int:
    return sum(widths) + GAP * len(widths)


def _widths(columns: Sequence[Column], total: int) -> list[int]:
    """Widths that fit ``total``: room beyond the narrowest goes to the header with the most lines."""
    widths = [c.narrowest for c in columns]
    while _width(widths) < total:
        lines = [len(wrapped(c.name, w)) + len(wrapped(c.unit, w)) for c, w in zip(columns, widths, strict=True)]
        tallest = int(np.argmax(lines))
        if lines[tallest] <= 3:
            break
        widths[tallest] += 1
    return widths


def _parts(name: str) -> list[str]:
    return re.findall(r"[^_./ ]+[_./ ]?|[_./ ]", name)


def wrapped(name: str, width: int) -> list[str]:
    """Return a name in lines of at most ``width`` where its parts allow, broken after "_", ".", "/" and blanks."""
    lines: list[str] = []
    for part in _parts(name):
        if lines and len(lines[-1]) + len(part.rstrip()) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return [line.rstrip() for line in lines]
