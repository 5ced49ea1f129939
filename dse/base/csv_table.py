"""A user's table, CSV or Parquet: read, its columns as numbers; what is wrong is told with file, line and value."""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dse.base.errors import InputError, accepted
from dse.base.text_file import TABLE, parsing, read_text

if TYPE_CHECKING:
    import pandas as pd  # imported where a table is read: most commands read none

MICROSECONDS = "latency_us (microseconds)"
OTHER_UNITS = {
    "power_mw": "power_w (watts)",
    "power_kw": "power_w (watts)",
    "meas_mW": "meas_W (watts)",
    **dict.fromkeys(("latency_ms", "latency_s", "latency_ns", "latency", "time_us", "time_ms"), MICROSECONDS),
}
"""Columns in another unit or under another name -> what to give instead."""

OTHER_UNIT = 100.0
"""Predicted over measured time that no kernel and no engine explains: times are in another unit."""

UNNAMED = "Unnamed: "
"""What a column is called whose header is empty, before its place."""

PARQUET = ".parquet"
"""End of the name of a table that is no CSV."""

UNIT = re.compile(r"\s*[\[(][^\])]*[\])]$")
"""A unit in brackets at the end of a column's name."""

NAMED = 5
"""Lines of a table that a refusal names beside the first."""


def read_csv(path: Path, rows: int | None = None, words: Iterable[str] = ()) -> "pd.DataFrame":
    """Return a table, or its first ``rows``, names without blanks around them; ``words``: columns that are no numbers.

    Raises InputError where there is no file or no table in it, a column stands twice or a row has more cells than the
    header: empty ones are passed over, such as a comma at the end of each row leaves.
    """
    import pandas as pd

    text = csv_text(path)
    try:
        names = _checked_header(path, text)
        # By the header's places: pandas would take the first column of longer rows for an index.
        return pd.read_csv(
            io.StringIO(text, newline=""),
            header=0,
            names=names,
            usecols=range(len(names)),
            index_col=False,
            nrows=rows,
            low_memory=False,
            skipinitialspace=True,
            dtype=dict.fromkeys(words, str),
        )
    except (csv.Error, ValueError, OverflowError) as error:  # pandas' are of these kinds
        raise InputError(f"{path}: is no CSV table: {' '.join(str(error).split())}") from None


def read_table_file(path: Path, rows: int | None = None) -> "pd.DataFrame":
    """Return a table, or its first ``rows``: Parquet where its file's name says so, else CSV (:func:`read_csv`)."""
    path = Path(path)
    if path.suffix != PARQUET:
        return read_csv(path, rows)
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, NotImplementedError, MemoryError, TypeError, KeyError) as error:  # pyarrow's
        raise InputError(f"{path}: is no Parquet table: {' '.join(str(error).split())}") from None
    refuse_twice(path, frame.columns)
    return frame[:rows]


def _checked_header(path: Path, text: str) -> list[str]:
    """Names of a table's columns, since pandas tells those apart that stand twice and drops what stands beyond them."""
    filled = ((line, cells) for line, cells in _numbered(text) if any(cell.strip() for cell in cells))
    names = [cell.strip() or f"{UNNAMED}{i}" for i, cell in enumerate(next(filled, (1, []))[1])]
    refuse_separators(path, names)
    refuse_twice(path, names)
    refuse_beyond(path, len(names), filled)
    return names


def refuse_beyond(path: Path, width: int, rows: Iterable[tuple[int, list[str]]]) -> None:
    """Raise InputError at the first cell that stands beyond the ``width`` columns of the header, blank ones aside.

    ``rows``: each with the line that it begins on.
    """
    for line, cells in rows:
        beyond = [cell for cell in cells[width:] if cell.strip()]
        if beyond:
            raise InputError(
                f"{path}: row {line}: {beyond[0]!r} stands beyond the {width} columns of the "
                "header; give a cell a column, with quotes around one that holds a comma"
            )


def csv_text(path: Path) -> str:
    """Return the text of a CSV file, with lines that begin with # left empty; raises InputError."""
    text = read_text(path, TABLE)
    if "#" not in text:
        return text
    lines, quotes = [], 0
    for line in text.splitlines(keepends=True):
        comment = line.lstrip().startswith("#") and quotes % 2 == 0
        quotes += 0 if comment else line.count('"')
        lines.append(line[len(line.rstrip("\r\n")) :] if comment else line)
    return "".join(lines)


def csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that hold anything, each with the line that it begins on; raises InputError."""
    with parsing(path, "CSV"):
        return [(line, cells) for line, cells in _numbered(csv_text(path)) if any(cell.strip() for cell in cells)]


def _numbered(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV file's text with the line that it begins on."""
    reader, line = csv.reader(io.StringIO(text, newline="")), 1
    for cells in reader:
        yield line, cells
        line = reader.line_num + 1


def _lines(path: Path, count: int) -> list[int]:
    """Return the lines of a table's rows, blank ones passed over; as if there were none in a file that is no such CSV
    of ``count`` rows. Rows of Parquet are counted from 1."""
    if Path(path).suffix == PARQUET:
        return list(range(1, count + 1))
    try:
        text = csv_text(path)
        lines = [line for line, cells in _numbered(text) if len(cells) > 1 or any(cell.strip() for cell in cells)]
    except (InputError, csv.Error):
        lines = []
    return lines[1:] if len(lines) == count + 1 else list(range(2, count + 2))


def refuse_twice(path: Path, names: Iterable[str], what: str = "column") -> None:
    """Raise InputError at a name of a column, or of ``what`` else, that stands twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path}: {what} {twice[0]!r} stands twice; give it once")


def refuse_capitals(path: Path, columns: Iterable[object], expected: Collection[str]) -> None:
    """Raise InputError at a column that is an ``expected`` one but for capitals or a unit in brackets, unless that
    stands beside it."""
    names = list(map(str, columns))
    for name in names:
        meant = UNIT.sub("", name.lower())
        if name not in expected and meant in expected and meant not in names:
            raise InputError(f"{path}: column {name!r} is not known; {accepted(meant, [meant])}")


def refuse_separators(path: Path, columns: Iterable[object]) -> None:
    """Raise InputError at a header whose cells stand apart by something else than commas."""
    header = list(map(str, columns))
    for separator, called in ((";", "semicolons"), ("\t", "tabs"), (" ", "blanks")):
        if len(header) == 1 and separator in header[0].strip():
            raise InputError(f"{path}: its columns stand apart by {called}; give commas (and decimal points)")


def numbers(path: Path, frame: "pd.DataFrame", column: str) -> np.ndarray:
    """Return a column as numbers (rows,), nan where a cell is empty; raises InputError at a word."""
    import pandas as pd

    found = pd.to_numeric(frame[column], errors="coerce")
    wrong = (found.isna() & frame[column].notna()).to_numpy()
    refuse_cells(path, column, frame[column].to_numpy(object), wrong, "give a number")
    return found.to_numpy(float)


def times_us(path: Path, frame: "pd.DataFrame") -> np.ndarray:
    """Return the column ``latency_us`` [us] (rows,), nan where a cell is empty; raises InputError at no time."""
    time = numbers(path, frame, "latency_us")
    refuse_cells(path, "latency_us", time, (time <= 0) | np.isinf(time), "give a positive time")
    return time


def refuse_units(path: Path, columns: "pd.Index") -> None:
    """Raise InputError at a column of OTHER_UNITS, unless the right one stands beside it."""
    lower = {other.lower(): instead for other, instead in OTHER_UNITS.items()}
    for column in columns:
        instead = lower.get(str(column).lower())
        if instead and instead.split()[0] not in columns:
            raise InputError(f"{path}: column {column} is not read; give {instead}")


def refuse_cells(path: Path, column: str, cells: np.ndarray, wrong: np.ndarray, instead: str) -> None:
    """Raise InputError where any cell of a column is wrong, both (rows,): the first one and the lines of the others.

    Lines are those of the file, blank ones too.
    """
    if not wrong.any():
        return
    every = _lines(path, len(wrong))
    lines = [every[place] for place in np.flatnonzero(wrong)]
    first = cells[wrong][0]
    value = f"{first:g}" if isinstance(first, float) else repr(first)
    named = ", ".join(map(str, lines[1 : NAMED + 1])) + (" ..." if len(lines) > NAMED + 1 else "")
    others = f" ({len(lines) - 1} more: {named})" if len(lines) > 1 else ""
    raise InputError(f"{path}: row {lines[0]}: {column} is {value}; {instead}{others}")


def notes_of_unit(apart: float, of: str = "") -> list[str]:
    """Return that times are in another unit, where the median of predicted over measured ones says so."""
    if 1 / OTHER_UNIT < apart < OTHER_UNIT:
        return []
    return [f"the median row{of} is predicted {apart:.2g} times as long as measured: is latency_us in microseconds?"]


def sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
