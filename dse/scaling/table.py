"""Tables of performance and miss rate by system size: the authors' spreadsheet as it is, or a CSV of the same columns.

A row is a benchmark at a size. The names of the benchmark and of its sheet may stand in their first row only.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

from dse.base.csv_table import csv_text, refuse_separators
from dse.base.errors import InputError
from dse.base.extras import extra
from dse.base.text_file import parsing

COLUMNS = {
    "benchmark": ("benchmark", "benchmarkname", "name", "workload"),
    "size": ("#sm", "sm", "sms", "smcount", "size", "#chiplet", "chiplet", "chiplets"),
    "ipc": ("ipc",),
    "mpki": ("mpki",),
    "f_mem": ("fmem",),
    "f_mem_percent": ("fmem%", "fmempercent"),
    "seconds": ("simulationtimes", "times", "seconds", "simulationseconds"),
    "scaling": ("scaling",),
    "sheet": ("sheet",),
}
"""Column -> its names, lower case and without blanks, underscores and brackets."""

OTHER_UNITS = {
    "simulationtime": "simulation_time_s (seconds)",
    "time": "time_s (seconds)",
    "simulationtimems": "simulation_time_s (seconds)",
    "simulationtimeh": "simulation_time_s (seconds)",
    "simulationtimemin": "simulation_time_s (seconds)",
    "timems": "time_s (seconds)",
    "timeus": "time_s (seconds)",
    "cpi": "ipc (instructions a cycle of the whole system)",
    "ipcpersm": "ipc (of the whole system)",
    "ipc/sm": "ipc (of the whole system)",
    "mpi": "mpki (misses per thousand instructions)",
    "mpmi": "mpki (misses per thousand instructions)",
    "missrate": "mpki (misses per thousand instructions)",
    "missrate%": "mpki (misses per thousand instructions)",
}
"""Columns that mean the right thing in another unit -> what to give."""

MOST = 1_000_000
"""Largest size of a system [SM or chiplet]: far above any, and far below where a power of it has no number."""

SCALINGS = ("strong", "weak")

ACCEPTED = {
    "size": f"a whole number of SMs or chiplets, at most {MOST:,}",
    "ipc": "a positive number",
    "mpki": "0 to 1000 misses per thousand instructions",
    "f_mem": "a fraction from 0 to below 1",
    "seconds": "a positive number",
}
"""Number of a row -> what it may be."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark over the sizes of its system; every column has a value a size, None where the table has none.

    Raises InputError at numbers that a table may not hold either (ACCEPTED).
    """

    name: str
    sizes: tuple[float, ...]  # ascending [SM or chiplet]
    ipc: tuple[float | None, ...]  # [instruction/cycle]
    mpki: tuple[float | None, ...]  # misses per thousand instructions
    f_mem: tuple[float | None, ...]  # share of cycles in which all warps wait for memory [1]
    seconds: tuple[float | None, ...]  # of simulation [s]
    weak: bool = False  # weak scaling: the input grows with the system, so that there are no cliffs

    def __post_init__(self) -> None:
        where = f"benchmark {self.name}"
        if not self.sizes:
            raise InputError(f"{where}: has no sizes; give those of its scale models, and those to predict")
        for column in ("ipc", "mpki", "f_mem", "seconds"):
            values = getattr(self, column)
            if len(values) != len(self.sizes):
                raise InputError(
                    f"{where}: {column} has {len(values)} values of {len(self.sizes)} sizes; give one each"
                )
            for size, value in zip(self.sizes, values, strict=True):
                _check(f"{where}: size {size:g}", column, value)
        for size in self.sizes:
            _check(where, "size", size)
        for first, second in pairwise(self.sizes):
            if first >= second:
                raise InputError(f"{where}: size {second:g} follows {first:g}; give each size once, ascending")

    def at(self, column: str, size: float) -> float | None:
        """Return the value of a column at a size, None where there is none."""
        return getattr(self, column)[self.sizes.index(size)] if size in self.sizes else None

    def f_mem_of(self, after: float, large: float) -> float | None:
        """Return f_mem of the cliff that ends at size ``after``, None where no row has it.

        That of the ``large`` scale model (Eq. 3) where every scale model up to it has one, each measured at its own
        size; else the cliff's own row's; else the large model's; else the first row's, which serves all cliffs.
        """
        measured = [f for size, f in zip(self.sizes, self.f_mem, strict=True) if size <= large]
        own = None if None in measured else self.at("f_mem", large)
        candidates = (own, self.at("f_mem", after), self.at("f_mem", large), self.f_mem[0])
        return next((f for f in candidates if f is not None), None)


@dataclass(frozen=True)
class Sheet:
    """Benchmarks of one table, each once (InputError); ``unit`` is what sizes count: SM or chiplet."""

    name: str
    unit: str
    benchmarks: tuple[Benchmark, ...]

    def __post_init__(self) -> None:
        if not self.benchmarks:
            raise InputError(f"sheet {self.name}: has no benchmarks; give one or more")
        refuse_twice(f"sheet {self.name}: benchmark", [b.name for b in self.benchmarks])


def refuse_twice(what: str, names: Sequence[str]) -> None:
    """Raise InputError at a name that stands twice; ``what`` begins its sentence."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"{what} {name} stands twice; give it once")


def read_scale_table(path: Path) -> list[Sheet]:
    """Read a spreadsheet (.xlsx, a table a sheet) or a CSV; raises InputError with the sheet, the row and the remedy.

    Columns: benchmark; size (or #SM, #Chiplet); ipc; mpki (strong scaling); f_mem, a fraction (or text, "Fmem = 52",
    in percent); simulation_time_s; scaling (strong or weak, in any row of a benchmark; without it a sheet whose name
    holds "weak" is weak); sheet. A row whose ipc is empty is a size to predict.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() == ".xlsx":
        tables = _spreadsheet(path)
    elif path.suffix.lower() in (".csv", ".txt"):
        tables = _csv(path)
    else:
        raise InputError(f"{path}: is neither .xlsx nor .csv")
    sheets = [sheet for name, rows in tables for sheet in _sheets(path, name, rows)]
    if not sheets:
        raise InputError(
            f"{path}: has no rows; give a row a benchmark and size, with columns benchmark, size, ipc, mpki"
        )
    return sheets


def _spreadsheet(path: Path) -> list[tuple[str, list[Sequence[Any]]]]:
    from zipfile import BadZipFile

    with extra("scale", f"{path}"):
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = openpyxl.load_workbook(path, data_only=True)
    except (OSError, BadZipFile, InvalidFileException, KeyError, ValueError, TypeError, EOFError, SyntaxError) as error:
        raise InputError(f"{path}: is no .xlsx spreadsheet: {error}") from None
    return [(sheet.title, list(sheet.iter_rows(values_only=True))) for sheet in book.worksheets]


def _csv(path: Path) -> list[tuple[str, list[Sequence[Any]]]]:
    with parsing(path, "CSV"):
        rows: list[Sequence[Any]] = list(csv.reader(io.StringIO(csv_text(path), newline="")))
    refuse_separators(path, rows[0] if rows else ())
    return [(path.stem, rows)]


def _sheets(path: Path, name: str, rows: list[Sequence[Any]]) -> list[Sheet]:
    """Return the tables of a sheet: several where a column ``sheet`` tells them apart, none where it is empty."""
    if not any(_filled(row) for row in rows):
        return []
    where = f"{path}: sheet {name}" if path.suffix.lower() == ".xlsx" else str(path)
    places, unit = _places(where, rows[0])
    width = max(place for place, cell in enumerate(rows[0]) if _has_value(cell)) + 1
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    benchmark, table = "", name
    for number, cells in enumerate(rows[1:], start=2):
        if not _filled(cells):
            continue
        at = f"{where}: row {number}"
        _refuse_beyond(at, cells[width:], width)
        row = {key: cells[place] if place < len(cells) else None for key, place in places.items()}
        benchmark = str(row["benchmark"]).strip() if _has_value(row["benchmark"]) else benchmark
        if not benchmark:
            raise InputError(f"{at}: no benchmark is named, in this row or above; name it in its first row")
        table = str(row["sheet"]).strip() if _has_value(row.get("sheet")) else table
        tables.setdefault(table, {}).setdefault(benchmark, []).append(_row(at, row))
    return [
        Sheet(table, unit, tuple(_benchmark(table, b, points, "mpki" in places) for b, points in benchmarks.items()))
        for table, benchmarks in tables.items()
    ]


def _refuse_beyond(at: str, cells: Sequence[Any], width: int) -> None:
    """Refuse what stands beyond the header, as :func:`dse.base.csv_table.read_csv` does: a comma in a number moves
    cells."""
    beyond = [cell for cell in cells if _has_value(cell)]
    if beyond:
        raise InputError(
            f"{at}: {str(beyond[0]).strip()!r} stands beyond the {width} columns of the header; give a cell a column, "
            "with quotes around one that holds a comma"
        )


def _places(where: str, header: Sequence[Any]) -> tuple[dict[str, int], str]:
    """Return the place of each known column, and what the sizes count."""
    keys = ["".join(c for c in str(cell or "").lower() if c not in " _()[]") for cell in header]
    by_name = {alias: column for column, aliases in COLUMNS.items() for alias in aliases}
    places: dict[str, int] = {}
    for place, key in enumerate(keys):
        if (column := by_name.get(key)) in places:
            two = " and ".join(repr(str(header[p]).strip()) for p in (places[column], place))
            raise InputError(f"{where}: columns {two} both state the {column}; give one of the two")
        places |= {column: place} if column else {}
    for place, key in enumerate(keys):
        instead = OTHER_UNITS.get(key)
        if instead and {"s": "seconds", "i": "ipc", "m": "mpki", "t": "seconds"}[instead[0]] not in places:
            raise InputError(f"{where}: column {str(header[place]).strip()!r} is in another unit; give {instead}")
    missing = [column for column in ("benchmark", "size", "ipc") if column not in places]
    if missing:
        raise InputError(f"{where}: no column {', '.join(missing)}; the table needs benchmark, size, ipc and mpki")
    return places, "chiplet" if "chiplet" in keys[places["size"]] else "SM"


def _row(at: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's numbers, checked, and its scaling, "" where it says none."""
    scaling = str(row["scaling"]).strip().lower() if _has_value(row.get("scaling")) else ""
    if scaling and scaling not in SCALINGS:
        raise InputError(f"{at}: scaling is {row['scaling']!r}; give strong or weak")
    numbers = {key: _check(at, key, row.get(key)) for key in ("size", "ipc", "mpki", "seconds")}
    if numbers["size"] is None:
        raise InputError(f"{at}: no size; give the number of SMs or chiplets")
    return numbers | {"f_mem": _f_mem(at, row), "scaling": scaling, "at": at}


def _f_mem(at: str, row: dict[str, Any]) -> float | None:
    """Return f_mem as a fraction: a number is one, the text "Fmem = 52" and a column in % are percent.

    A text of at most 1 without a % sign could be either, and is refused.
    """
    percent = _has_value(row.get("f_mem_percent"))
    value = row["f_mem_percent"] if percent else row.get("f_mem")
    if not _has_value(value):
        return None
    text = str(value).strip()
    stated = percent or text.endswith("%")
    if "=" in text or text.endswith("%"):
        text, percent = text.split("=")[-1].rstrip("% "), True
    number = _number(at, "f_mem", text)
    if percent and not stated and 0 < (number or 0.0) <= 1:
        raise InputError(
            f"{at}: f_mem is {value!r}, a fraction or percent; give the number alone if it is a fraction, with a "
            "% sign if it is percent"
        )
    share = (number or 0.0) / (100.0 if percent else 1.0)
    if not 0 <= share < 1:
        raise InputError(
            f"{at}: f_mem is {value!r}; give a fraction from 0 to below 1 (or text, as 'Fmem = 52': percent)"
        )
    return share


def _benchmark(table: str, name: str, points: list[dict[str, Any]], has_mpki: bool) -> Benchmark:
    """Return the rows of a benchmark as one, weak where one of them or else the table's name says so."""
    points = sorted(points, key=lambda p: p["size"])
    for first, second in pairwise(points):
        if first["size"] == second["size"]:
            raise InputError(f"{second['at']}: benchmark {name} has size {second['size']:g} twice; give each size once")
    scalings = {p["scaling"] for p in points if p["scaling"]}
    if len(scalings) > 1:
        raise InputError(f"{points[0]['at']}: benchmark {name} is strong and weak; give one scaling")
    weak = "weak" in scalings if scalings else "weak" in table.lower()
    if not weak and not has_mpki:
        raise InputError(
            f"{points[0]['at']}: no column mpki; strong scaling needs it at every size, to find cliffs (weak scaling, "
            "marked by a column scaling or by the sheet's name, does not)"
        )
    columns = {key: tuple(p[key] for p in points) for key in ("ipc", "mpki", "f_mem", "seconds")}
    return Benchmark(name, tuple(p["size"] for p in points), weak=weak, **columns)


def _check(at: str, key: str, value: Any) -> float | None:
    """Return a number of ACCEPTED, None where there is none."""
    number = _number(at, key, value)
    if number is None:
        return None
    whole = 0 < number <= MOST and number % 1 == 0
    fits = {"size": whole, "mpki": 0 <= number <= 1000, "f_mem": 0 <= number < 1}
    if not fits.get(key, number > 0):
        raise InputError(f"{at}: {key} is {number:.15g}; give {ACCEPTED[key]}")
    return number


def _number(at: str, key: str, value: Any) -> float | None:
    if not _has_value(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number):
        raise InputError(f"{at}: {key} is {value!r}; give a number")
    return number


def _has_value(value: Any) -> bool:
    return value is not None and str(value).strip() != ""


def _filled(row: Iterable[Any]) -> bool:
    return any(_has_value(cell) for cell in row)
