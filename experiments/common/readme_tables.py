"""Tables of an experiment's README that its run.py writes, between two marks, so that they say what it says.

A table stands between ``<!-- NAME: written by run.py -->`` and ``<!-- end of NAME -->``.
"""

from collections.abc import Sequence
from pathlib import Path


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, its first ``left`` columns to the left and the others to the right."""
    rule = ["---" if place < left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def table_in(readme: Path, name: str) -> str:
    """Return what stands between the marks of a table; raises ValueError where the README lacks them."""
    before, _, rest = readme.read_text(encoding="utf-8").partition(_start(name))
    table, end, _ = rest.partition(_end(name))
    if not (before and end):
        raise ValueError(f"{readme}: has no marks of a table {name!r}")
    return table.strip()


def write_table(readme: Path, name: str, table: str) -> None:
    """Replace what stands between the marks of a table; raises ValueError where the README lacks them."""
    text, old = readme.read_text(encoding="utf-8"), table_in(readme, name)
    whole = f"{_start(name)}\n{old}\n{_end(name)}"
    readme.write_text(text.replace(whole, f"{_start(name)}\n{table}\n{_end(name)}"), encoding="utf-8")


def _start(name: str) -> str:
    return f"<!-- {name}: written by run.py -->"


def _end(name: str) -> str:
    return f"<!-- end of {name} -->"
