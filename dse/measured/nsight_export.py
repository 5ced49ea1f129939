"""Nsight Compute's CSV exports as measured tables: kernel times by their metric's name and unit, shapes from NVTX
ranges or from a table beside the export.

Two layouts are read, after the lines that ``ncu`` and the program print: ``ncu --csv --page raw`` (a column a metric,
units in the row below the names) and ``ncu --csv`` (a line a metric: Metric Name, Metric Unit, Metric Value).
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path

import pandas as pd

from dse.base.csv_table import PARQUET, read_csv, refuse_capitals, refuse_twice
from dse.base.errors import InputError, accepted
from dse.base.printed_numbers import decimal_comma, printed_number
from dse.base.text_file import TABLE, parsing, read_text
from dse.measured.profiler.executed_instructions import executed, noted

TIME = "gpu__time_duration.sum"
SHORT_TIME = "Duration"
"""The same time as the details page names it."""

SPELLINGS_US = {
    1e-3: ("ns", "nsec", "nsecs", "nsecond", "nseconds", "nanosecond", "nanoseconds"),
    1.0: ("us", "\u00b5s", "\u03bcs", "usec", "usecs", "usecond", "useconds", "microsecond", "microseconds"),
    1e3: ("ms", "msec", "msecs", "msecond", "mseconds", "millisecond", "milliseconds"),
    1e6: ("s", "sec", "secs", "second", "seconds"),
}
"""Microseconds -> the unit's spellings: versions of ncu differ, and programs that rewrite its exports."""

UNITS_US = {unit: us for us, spellings in SPELLINGS_US.items() for unit in spellings}

NAME = "device__attribute_display_name"
RANGES = "push/pop_range"
"""Part of the name of the column that holds a launch's NVTX ranges (``ncu --nvtx``)."""

UNNAMED_GPU = "GPU of compute capability "
"""What a device is called whose export does not name it begins with."""

LAUNCH = ("ID", "Process ID", "Kernel Name", "Grid Size", "Block Size")
"""Columns that all lines of a launch have alike in the long form."""

NUMBERS = ("batch", "m", "n", "k", "rows", "cols", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv", "causal")
WORDS = ("op", "dtype", "device")
PROLOGUE = 10_000
"""Lines that a profiled program may print before the header."""

SHAPED = (*WORDS, *NUMBERS)
"""What an NVTX range or the table of shapes may say of a kernel, as columns of a measured table."""

NO_SHAPE = "kernel without a shape"
"""Operator of launches that nothing is said about: they are skipped, and counted."""

HELP = (
    "NVTX ranges named like 'gemm m=4096 n=4096 k=4096 dtype=bf16' (ncu --nvtx), or a table {shapes} with a row a "
    "kernel: op, dtype, m, n, k ..., and ID where kernels are left out"
)


@dataclass(frozen=True)
class ProfiledLaunch:
    """One profiled kernel: ``us`` [us], the innermost NVTX range that states a shape, the device if it is named.

    ``metrics``: the cells of everything that was measured, by Nsight Compute's names. ``comma``: whether its numbers
    have a decimal comma.
    """

    number: str
    kernel: str
    grid: str
    block: str
    us: float
    range: str
    device: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    comma: bool = False


Operation = tuple[Sequence[ProfiledLaunch], Mapping[str, object]]
"""The launches of one operation, and what is said of its shape."""


def is_export(path: Path) -> bool:
    """Return whether a file is an export of Nsight Compute: the header's names stand at the start of a line."""
    if Path(path).suffix == PARQUET:
        return False
    try:
        lines = read_text(path, TABLE, any_bytes=True).splitlines()
    except InputError:
        return False  # who reads the table says why
    return any(_is_header(line) for line in islice(lines, PROLOGUE))


def shapes_file(path: Path) -> Path:
    """Return where the table of shapes of an export is looked for: NAME.shapes.csv beside NAME.csv."""
    return Path(path).with_suffix(".shapes.csv")


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files that are read of a measured table: an export has its table of shapes beside it."""
    return (path, shapes_file(path)) if is_export(path) else (path,)


def read_export(path: Path) -> pd.DataFrame:
    """Return an export as a measured table; raises InputError where times or shapes cannot be had.

    A launch is a row; kernels of one range that follow each other are one operation (a split product and its sum) until
    the first of them comes again. Launches without a shape keep a row of the operator NO_SHAPE.
    """
    found = [_row(launches, said) for launches, said in operations(path)]
    if all(row["op"] == NO_SHAPE for row in found):
        raise InputError(f"{path}: no kernel says its shape; give {HELP.format(shapes=shapes_file(path).name)}")
    columns = ("source", "group", *SHAPED, "latency_us", "notes")
    return pd.DataFrame(found, columns=list(columns))


def operations(path: Path) -> list[Operation]:
    """Return the launches of each row of an export, and what is said of its shape; raises InputError without any."""
    header, units, rows = _rows(Path(path))
    if TIME in header:
        launches = _wide(path, header, units, rows)
    elif "Metric Name" in header:
        launches = _long(path, header, rows)
    else:
        raise InputError(f"{path}: no column {TIME}; profile with --metrics {TIME} or --set full, export with --csv")
    if not launches:
        raise InputError(f"{path}: holds no kernel")
    shapes_path = shapes_file(path)
    return _from_table(path, shapes_path, launches) if shapes_path.exists() else _from_ranges(path, launches)


def _is_header(line: str) -> bool:
    return line.lstrip("\ufeff").startswith(('"ID",', "ID,")) and "Kernel Name" in line


def _rows(path: Path) -> tuple[list[str], list[str], list[dict[str, str]]]:
    """Header, units by column ("" without a row of units) and the rows by column."""
    lines = read_text(path, TABLE, any_bytes=True).splitlines()
    start = next((i for i, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        raise InputError(f'{path}: is no export of Nsight Compute: no line begins with "ID" and names Kernel Name')
    body = [line for line in lines[start:] if line.strip() and not line.startswith("==")]
    with parsing(path, "CSV"):
        header, *rows = csv.reader(body)
    if missing := [name for name in ("ID", "Kernel Name") if name not in header]:
        raise InputError(f"{path}: no column {missing[0]}; export with 'ncu --csv', or '--page raw'")
    refuse_twice(path, filter(None, header))
    number = header.index("ID")
    rows = [row for row in rows if len(row) == len(header)]  # what the program prints is no row
    units = next((row for row in rows if not row[number].strip()), [""] * len(header))
    return header, units, [dict(zip(header, row, strict=True)) for row in rows if row[number].strip()]


def _wide(
    path: Path, header: Sequence[str], units: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> list[ProfiledLaunch]:
    unit = units[header.index(TIME)].strip()
    others = [cell for row in rows for name, cell in row.items() if name not in LAUNCH]
    comma = _decimal_comma(path, [row[TIME] for row in rows], others)
    return [_launch(path, row, row[TIME], unit, comma, row) for row in rows]


def _decimal_comma(path: Path, times: Sequence[str], others: Sequence[str]) -> bool:
    """Whether times have a decimal comma, as ncu prints them in some locales."""
    comma = decimal_comma(times, others)
    if comma is None:
        raise InputError(f"{path}: {TIME} has decimal commas and decimal points; export it with LC_ALL=C")
    return comma


def _long(path: Path, header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[ProfiledLaunch]:
    missing = [name for name in ("Metric Unit", "Metric Value") if name not in header]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; export with 'ncu --csv', or '--page raw'")
    metrics = {row["Metric Name"] for row in rows}
    wanted = TIME if TIME in metrics else SHORT_TIME
    times = [row["Metric Value"] for row in rows if row["Metric Name"] == wanted]
    comma = _decimal_comma(path, times, [row["Metric Value"] for row in rows])
    launches = []
    for lines in _by_launch(rows):
        said = {row["Metric Name"]: row for row in reversed(lines)}
        if wanted not in said:
            raise InputError(
                f"{path}: Metric Name: kernel {lines[0]['ID']} has no {TIME}; profile with --metrics {TIME}"
            )
        time, name = said[wanted], said[NAME]["Metric Value"] if NAME in said else ""
        metrics = {metric: line["Metric Value"] for metric, line in said.items()}
        value, unit = time["Metric Value"], time["Metric Unit"].strip()
        launches.append(_launch(path, {**time, NAME: name}, value, unit, comma, metrics))
    return launches


def _by_launch(rows: Sequence[Mapping[str, str]]) -> list[list[Mapping[str, str]]]:
    """Lines of each launch: one ends where another kernel stands, or a metric of its section again, since exports of
    several processes or runs have an ID more than once."""
    launches: list[list[Mapping[str, str]]] = []
    seen: set[tuple[str, str]] = set()
    for row in rows:
        metric = (row.get("Section Name", ""), row["Metric Name"])
        if not launches or metric in seen or any(row.get(c) != launches[-1][0].get(c) for c in LAUNCH):
            launches.append([])
            seen = set()
        launches[-1].append(row)
        seen |= {metric} if metric[1] else set()  # lines of rules have none
    return launches


def _launch(
    path: Path, row: Mapping[str, str], time: str, unit: str, comma: bool, metrics: Mapping[str, str]
) -> ProfiledLaunch:
    if unit not in UNITS_US:  # no unit is near another: they differ by a thousand
        raise InputError(f"{path}: {TIME} is in {unit!r}; give ns, us, ms or s (a row of units, or Metric Unit)")
    try:
        us = printed_number(time, comma) * UNITS_US[unit]
    except ValueError:
        raise InputError(f"{path}: kernel {row['ID']}: {TIME} is {time!r}; give a number") from None
    if not isfinite(us):
        raise InputError(f"{path}: kernel {row['ID']}: {TIME} is {time!r}; give a number")
    ranges = next((text for name, text in row.items() if RANGES in name.lower()), "")
    device = row.get(NAME, "").strip() or f"{UNNAMED_GPU}{row.get('CC', '').strip() or 'unknown'}"
    grid, block = row.get("Grid Size", ""), row.get("Block Size", "")
    return ProfiledLaunch(row["ID"], row["Kernel Name"], grid, block, us, _range(ranges), device, metrics, comma)


def _range(text: str) -> str:
    """The innermost range that states a number: an operator's name with name=value behind it."""
    return next((found.group(0) for found in reversed(list(re.finditer(r"\w+(?: \w+=[\w.-]+)+", text)))), "")


def _from_ranges(path: Path, launches: Sequence[ProfiledLaunch]) -> list[Operation]:
    """Operations by NVTX ranges, the kernels of one operation added up."""
    groups: list[list[ProfiledLaunch]] = []
    for launch in launches:
        same = bool(groups and launch.range) and launch.range == groups[-1][-1].range
        if same and launch.kernel != groups[-1][0].kernel:
            groups[-1].append(launch)
        else:
            groups.append([launch])
    return [(group, _said(path, group[0].range)) for group in groups]


def _said(path: Path, text: str) -> dict[str, object]:
    """What a range says: 'gemm m=8 n=16 k=32 dtype=bf16'."""
    if not text:
        return {}
    op, *pairs = text.split(" ")
    said: dict[str, object] = {"op": op}
    for name, value in (pair.split("=", 1) for pair in pairs):
        if name not in SHAPED:
            raise InputError(f"{path}: NVTX range {text!r}: {name}: {accepted(name.lower(), SHAPED)}")
        said[name] = value if name in WORDS else _number(f"{path}: NVTX range {text!r}: {name}", value)
    return said


def _number(where: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{where} is {value!r}; give a number") from None


def _from_table(path: Path, shapes_path: Path, launches: Sequence[ProfiledLaunch]) -> list[Operation]:
    """Operations by the table of shapes: by ID, or in order where it has none and as many rows as there are kernels."""
    table = read_csv(shapes_path, words=("ID", *WORDS))
    refuse_capitals(shapes_path, table.columns, SHAPED)
    unknown = [name for name in table.columns if name not in (*SHAPED, "ID")]
    if unknown or "op" not in table.columns:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else "no column op"
        raise InputError(f"{shapes_path}: {wrong}; accepted are: ID, {', '.join(SHAPED)}")
    for name in (name for name in NUMBERS if name in table.columns):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise InputError(f"{shapes_path}: {name}: give numbers")
    rows = table.drop(columns="ID", errors="ignore").to_dict(orient="records")
    said = [{str(name): value for name, value in row.items() if pd.notna(value)} for row in rows]
    if "ID" in table.columns:
        by_id = dict(zip(_ids(path, shapes_path, table["ID"], launches), said, strict=True))
        said = [by_id.get(launch.number, {}) for launch in launches]
    elif len(said) != len(launches):
        raise InputError(
            f"{shapes_path}: has {len(said)} rows for the {len(launches)} kernels of {path}; give one a kernel in its "
            "order, or a column ID"
        )
    return [([launch], words) for launch, words in zip(launches, said, strict=True)]


def _ids(path: Path, shapes_path: Path, ids: pd.Series, launches: Sequence[ProfiledLaunch]) -> list[str]:
    """The column ID of a table of shapes; raises InputError where it does not tell one kernel from another."""
    numbers = [launch.number for launch in launches]
    again = next((number for number, count in Counter(numbers).items() if count > 1), None)
    if again is not None:
        raise InputError(
            f"{shapes_path}: ID: {path} has kernel {again} more than once; leave the column out, and give a "
            "row a kernel in its order"
        )
    other = [number for number in ids if number not in numbers]
    if other or ids.duplicated().any():
        wrong = f"{path} has no kernel {other[0]}" if other else "a kernel stands twice"
        raise InputError(f"{shapes_path}: ID: {wrong}; give each kernel's once")
    return list(ids)


def _row(group: Sequence[ProfiledLaunch], said: Mapping[str, object]) -> dict[str, object]:
    """A row of the measured table of the launches of one operation."""
    first = group[0]
    notes = f"kernel={first.kernel}; grid={first.grid}; block={first.block}; kernels={len(group)}; ID={first.number}"
    notes += noted(executed((launch.metrics, launch.comma) for launch in group))
    known = {"op": NO_SHAPE, "dtype": "", "device": first.device} | {k: v for k, v in said.items() if v != ""}
    return {
        "source": "nsight_compute",
        "group": first.kernel,
        **known,
        "latency_us": sum(launch.us for launch in group),
        "notes": notes,
    }
