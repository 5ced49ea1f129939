"""Tables of performance and miss rate by system size: the authors' spreadsheet as it is, or a CSV of the same columns.

A row is a benchmark at a size. The benchmark's name may stand in its first row only.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

from dse.csv_table import refuse_separators
from dse.errors import InputError

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
    "simulationtime": "simulation_time_s (seconds)", "time": "time_s (seconds)",
    "simulationtimems": "simulation_time_s (seconds)", "simulationtimeh": "simulation_time_s (seconds)",
    "simulationtimemin": "simulation_time_s (seconds)", "timems": "time_s (seconds)", "timeus": "time_s (seconds)",
    "cpi": "ipc (instructions a cycle of the whole system)", "ipcpersm": "ipc (of the whole system)",
    "ipc/sm": "ipc (of the whole system)", "mpi": "mpki (misses per thousand instructions)",
    "mpmi": "mpki (misses per thousand instructions)", "missrate": "mpki (misses per thousand instructions)",
    "missrate%": "mpki (misses per thousand instructions)",
}  # fmt: skip
"""Columns that mean the right thing in another unit -> what to give."""

MOST = 1_000_000
"""Largest size of a system [SM or chiplet]: far above any, and far below where a power of it has no number."""

SCALINGS = ("strong", "weak")


@dataclass(frozen=True)
class Benchmark:
    """A benchmark over the sizes of its system, ascending; None where the table says nothing.

    ``ipc`` [instruction/cycle], ``mpki`` [misses per thousand instructions], ``f_mem`` [1], ``seconds`` [s] of
    simulation, one for each of ``sizes``. ``weak``: the input grows with the system, so no cliff is looked for.
    """

    name: str
    sizes: tuple[float, ...]
    ipc: tuple[float | None, ...]
    mpki: tuple[float | None, ...]
    f_mem: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    weak: bool = False

    def at(self, column: str, size: float) -> float | None:
        """Return the value of a column at a size, None where there is none."""
        return getattr(self, column)[self.sizes.index(size)] if size in self.sizes else None

    def f_mem_of(self, after: float, large: float) -> float | None:
        """Return f_mem of the cliff that ends at size ``after``, None where no row says it.

        That of the ``large`` scale model (Eq. 3) where every scale model up to it has one, each measured at its own
        size; else the cliff's own row's; else the large model's; else the first row's, which serves all cliffs.
        """
        measured = [f for size, f in zip(self.sizes, self.f_mem, strict=True) if size <= large]
        own = None if None in measured else self.at("f_mem", large)
        told = (own, self.at("f_mem", after), self.at("f_mem", large), self.f_mem[0])
        return next((f for f in told if f is not None), None)


@dataclass(frozen=True)
class Sheet:
    """Benchmarks of one table; ``unit`` is what sizes count: SM or chiplet."""

    name: str
    unit: str
    benchmarks: tuple[Benchmark, ...]


def read_scale_table(path: Path) -> list[Sheet]:
    """Read a spreadsheet (.xlsx, a table a sheet) or a CSV; raises InputError with the sheet, the row and the remedy.

    Columns: benchmark; size (or #SM, #Chiplet); ipc; mpki (strong scaling); f_mem, a fraction (or text, "Fmem = 52",
    in percent); simulation_time_s; scaling (strong or weak; without it a sheet whose name holds "weak" is weak);
    sheet (CSV only). A row whose ipc is empty is a size to predict.
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

    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = openpyxl.load_workbook(path, data_only=True)
    except (OSError, BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise InputError(f"{path}: is no .xlsx spreadsheet: {error}") from None
    return [(sheet.title, list(sheet.iter_rows(values_only=True))) for sheet in book.worksheets]


def _csv(path: Path) -> list[tuple[str, list[Sequence[Any]]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows: list[Sequence[Any]] = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is no CSV table: {error}") from None
    refuse_separators(path, rows[0] if rows else ())
    return [(path.stem, rows)]


def _sheets(path: Path, name: str, rows: list[Sequence[Any]]) -> list[Sheet]:
    """Return the tables of a sheet: several where a column ``sheet`` tells them apart, none where it is empty."""
    if not any(_filled(row) for row in rows):
        return []
    where = f"{path}: sheet {name}" if path.suffix.lower() == ".xlsx" else str(path)
    places, unit = _places(where, rows[0])
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    benchmark = ""
    for number, cells in enumerate(rows[1:], start=2):
        if not _filled(cells):
            continue
        at = f"{where}: row {number}"
        row = {key: cells[place] if place < len(cells) else None for key, place in places.items()}
        benchmark = str(row["benchmark"]).strip() if _given(row["benchmark"]) else benchmark
        if not benchmark:
            raise InputError(f"{at}: no benchmark is named, in this row or above; name it in its first row")
        table = str(row["sheet"]).strip() if _given(row.get("sheet")) else name
        tables.setdefault(table, {}).setdefault(benchmark, []).append(_row(at, table, row))
    return [
        Sheet(table, unit, tuple(_benchmark(where, b, points) for b, points in benchmarks.items()))
        for table, benchmarks in tables.items()
    ]


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


def _row(at: str, table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's numbers, checked."""
    scaling = str(row["scaling"]).strip().lower() if _given(row.get("scaling")) else ""
    if scaling and scaling not in SCALINGS:
        raise InputError(f"{at}: scaling is {row['scaling']!r}; give strong or weak")
    weak = scaling == "weak" if scaling else "weak" in table.lower()
    if not weak and "mpki" not in row:
        raise InputError(
            f"{at}: no column mpki; strong scaling needs it at every size, to find cliffs (weak scaling, marked by a "
            "column scaling or by the sheet's name, does not)"
        )
    numbers = {key: _number(at, key, row.get(key)) for key in ("size", "ipc", "mpki", "seconds")}
    if numbers["size"] is None:
        raise InputError(f"{at}: no size; give the number of SMs or chiplets")
    for key in ("size", "ipc", "seconds"):
        value = numbers[key]
        if value is not None and value <= 0:
            raise InputError(f"{at}: {key} is {value:g}; give a positive number")
    if numbers["size"] > MOST:
        raise InputError(f"{at}: size is {numbers['size']:g}; give at most {MOST:,} SMs or chiplets")
    if numbers["mpki"] is not None and not 0 <= numbers["mpki"] <= 1000:
        raise InputError(f"{at}: mpki is {numbers['mpki']:g}; give 0 to 1000 misses per thousand instructions")
    return numbers | {"f_mem": _f_mem(at, row), "weak": weak, "at": at}


def _f_mem(at: str, row: dict[str, Any]) -> float | None:
    """Return f_mem as a fraction: a number is one, the text "Fmem = 52" and a column in % are percent."""
    percent = _given(row.get("f_mem_percent"))
    value = row["f_mem_percent"] if percent else row.get("f_mem")
    if not _given(value):
        return None
    text = str(value).strip()
    if "=" in text or text.endswith("%"):
        text, percent = text.split("=")[-1].rstrip("% "), True
    number = _number(at, "f_mem", text)
    share = (number or 0.0) / (100.0 if percent else 1.0)
    if not 0 <= share < 1:
        raise InputError(
            f"{at}: f_mem is {value!r}; give a fraction from 0 to below 1 (or text, as 'Fmem = 52': percent)"
        )
    return share


def _benchmark(where: str, name: str, points: list[dict[str, Any]]) -> Benchmark:
    points = sorted(points, key=lambda p: p["size"])
    for first, second in pairwise(points):
        if first["size"] == second["size"]:
            raise InputError(f"{second['at']}: benchmark {name} has size {second['size']:g} twice; give each size once")
    if len({p["weak"] for p in points}) > 1:
        raise InputError(f"{points[0]['at']}: benchmark {name} is strong and weak; give one scaling")
    columns = {key: tuple(p[key] for p in points) for key in ("ipc", "mpki", "f_mem", "seconds")}
    return Benchmark(name, tuple(p["size"] for p in points), weak=points[0]["weak"], **columns)


def _number(at: str, key: str, value: Any) -> float | None:
    if not _given(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number):
        raise InputError(f"{at}: {key} is {value!r}; give a number")
    return number


def _given(value: Any) -> bool:
    return value is not None and str(value).strip() != ""


def _filled(row: Iterable[Any]) -> bool:
    return any(_given(cell) for cell in row)
