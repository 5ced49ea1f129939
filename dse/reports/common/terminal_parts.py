"""Parts that the commands' answers in the terminal share: a line as it is, a table without lines, what was skipped."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from dse.base.skipped_rows import lines


def say(console: Console, text: str, style: str = "") -> None:
    """Print a text as it is: brackets in it are no markup, numbers and paths get no colour."""
    console.print(text, markup=False, highlight=False, style=style)


def plain_table(title: str, texts: Iterable[str] = (), numbers: Iterable[str] = ()) -> Table:
    """Return a table without lines, its title on the left: columns of ``texts``, then of ``numbers``, never broken."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True, min_width=min(len(name), 5))
    return table


def print_notes(skipped: Mapping[str, int], notes: Iterable[str], console: Console) -> None:
    """Print how many rows were left out and why, and what else an answer must be read with."""
    for line in lines(skipped):
        say(console, line, "yellow")
    for note in notes:
        say(console, f"note: {note}", "dim")
