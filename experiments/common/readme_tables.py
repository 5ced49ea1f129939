"""Tables of an experiment's README that its run.py writes, between two marks, so that they say what it says.

A table stands between ``<!-- NAME: written by run.py -->`` and ``<!-- end of NAME -->``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

START = r"<!-- (\w+): written by run\.py -->"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, its first ``left`` columns to the left and the others to the right."""
    rule = ["---" if place < left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def tables_in(readme: Path) -> dict[str, str]:
    """Return every table that stands between marks, by its name."""
    return {name: table_in(readme, name) for name in re.findall(START, readme.read_text(encoding="utf-8"))}


def table_in(readme: Path, name: str) -> str:
    """Return what stands between the marks of a table; raises ValueError where the README lacks them, has one of them
    twice, or has them in the other order."""
    return _parts(readme, name)[1].strip()


def write_table(readme: Path, name: str, table: str) -> None:
    """Replace what stands between the marks of a table, if only nothing; raises ValueError as :func:`table_in`."""
    before, _, after = _parts(readme, name)
    readme.write_text(f"{before}{_start(name)}\n{table}\n{_end(name)}{after}", encoding="utf-8")


def _parts(readme: Path, name: str) -> tuple[str, str, str]:
    """Return a README before a table's marks, between them and behind them."""
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(_start(name))
    between, _, after = rest.partition(_end(name))
    if f"{before}{_start(name)}{between}{_end(name)}{after}" != text:
        raise ValueError(f"{readme}: has no marks of a table {name!r}")
    if any(mark in before + between + after for mark in (_start(name), _end(name))):
        raise ValueError(f"{readme}: has the marks of a table {name!r} more than once")
    return before, between, after


def _start(name: str) -> str:
    return f"<!-- {name}: written by run.py -->"


def _end(name: str) -> str:
    return f"<!-- end of {name} -->"
