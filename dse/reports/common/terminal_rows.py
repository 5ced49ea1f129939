"""Rows of a table in the terminal: no number and no name is broken; what has no room is left out, and said."""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from dse.reports.common.terminal_parts import plain_table, say

GAP = 2
"""Blank columns between two columns of a table."""

PROSE = 24
"""Width from which on the cells of a column of several words may be broken into lines."""

Rows = list[dict[str, Any]]


def print_rows(
    rows: Rows, console: Console, as_json: bool, title: str = "", rest: tuple[str, ...] = (), how: str = "--json"
) -> None:
    """Print rows as a table, or as a JSON list.

    Where a terminal is too narrow for all columns those of ``rest`` go first, then the last ones; ``how`` to see them.
    """
    if as_json:
        print(json.dumps(rows, indent=1, allow_nan=False))
        return
    narrowest = {name: _narrowest(name, rows) for name in rows[0]}
    left_out = _left_out(narrowest, rest, console.width)
    widths = _widths({n: w for n, w in narrowest.items() if n not in left_out}, rows, console.width)
    table = plain_table(title)
    for name, width in widths.items():
        numeric = all(isinstance(row[name], int | float) and not isinstance(row[name], bool) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(cell(row[name])) for name in widths))
    console.print(table)
    if left_out:
        say(console, f"\n{', '.join(left_out)}: in a wider terminal, or with {how}")


def cell(value: Any) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _narrowest(name: str, rows: Rows) -> int:
    """The width that breaks no cell but between the words of prose, and no word of the column's name."""
    words = max(len(word) for word in name.split())
    cells = [cell(row[name]) for row in rows]
    longest = max(map(len, cells))
    if longest > PROSE and any(" " in text for text in cells):
        longest = max(PROSE, *(len(word) for text in cells for word in text.split()))
    return max(words, longest)


def _widths(narrowest: dict[str, int], rows: Rows, room: int) -> dict[str, int]:
    """Widths that fit: what is beyond the narrowest goes to those that need it, the first columns first."""
    spare, widths = room - _whole(narrowest), {}
    for name, least in narrowest.items():
        full = max(len(name), *(len(cell(row[name])) for row in rows))
        widths[name] = least + max(0, min(full - least, spare))
        spare -= widths[name] - least
    return widths


def _whole(widths: dict[str, int]) -> int:
    return sum(width + GAP for width in widths.values()) - GAP


def _left_out(widths: dict[str, int], rest: tuple[str, ...], room: int) -> list[str]:
    """The columns that do not fit; the first always does."""
    names = list(widths)[1:]
    order = [name for name in reversed(names) if name in rest] + [name for name in reversed(names) if name not in rest]
    left_out: list[str] = []
    while order and _whole({name: width for name, width in widths.items() if name not in left_out}) > room:
        left_out.append(order.pop(0))
    return [name for name in names if name in left_out]
