"""The table of measured rows on disk: written row by row, and continued by a later run."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dse.base.atomic_files import write_whole
from dse.base.errors import InputError

COLUMNS = ("source", "group", "device", "op", "dtype", "batch", "m", "n", "k", "rows", "cols", "heads", "kv_heads",
           "head_dim", "seq_q", "seq_kv", "causal", "tp", "latency_us", "rep_n", "rep_lo_us", "rep_hi_us", "power_w",
           "notes")  # fmt: skip
"""Columns of a measured table, latency in microseconds, power in watts."""

KEY = COLUMNS[:18]
"""Columns that tell one measurement from another."""


class Table:
    """A measured table on disk; ``rows`` holds how many there are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._done = _read(path) if path.exists() and path.stat().st_size else self._start()
        self.rows = len(self._done)

    def _start(self) -> set[tuple[str, ...]]:
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(COLUMNS)
        return set()

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether this measurement stands in the table."""
        return _key(row) in self._done

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row, whole or not at all."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow([row.get(column, "") for column in COLUMNS])
        self._done.add(_key(row))
        self.rows += 1


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(column, "")) for column in KEY)


def _read(path: Path) -> set[tuple[str, ...]]:
    """Return the measurements of a table, after removing the torn line of a killed run."""
    text = path.read_text(encoding="utf-8")
    head = text.partition("\n")[0]
    if tuple(head.split(",")) != COLUMNS:
        raise InputError(f"{path}: is no table of dse measure (its columns are others); give -o another name")
    if not text.endswith("\n"):
        text = text[: text.rindex("\n") + 1] if "\n" in text else ",".join(COLUMNS) + "\n"
        write_whole(path, text)
    return {_key(row) for row in csv.DictReader(text.splitlines())}
