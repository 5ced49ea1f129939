"""What a profiler counted of a kernel's instructions: by class, as notes of a measured row.

Metrics of Nsight Compute and their classes stand in ``data/schema/executed_instructions.csv``.
"""

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import pandas as pd

from dse.base.package_tables import read_table
from dse.base.printed_numbers import printed_number

NOTE = "executed_"
"""How the note of a class begins: executed_instructions=1.2e6."""


@cache
def classes() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the metrics of each class, which add up; of each the spellings, by sub-core and by SM."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in read_table("schema/executed_instructions.csv"):
        metric = row["metric"]
        found.setdefault(row["class"], {}).setdefault(metric.partition("__")[2], []).append(metric)
    return {name: tuple(map(tuple, metrics.values())) for name, metrics in found.items()}


def executed(launches: Iterable[tuple[Mapping[str, str], bool]]) -> dict[str, float]:
    """Return the warp instructions by class of the launches of one operation, those classes that each launch counts.

    ``launches``: cells by metric, and whether their numbers have a decimal comma. A cell that is no number counts
    nothing.
    """
    each = [_of_launch(metrics, comma) for metrics, comma in launches]
    common = set.intersection(*map(set, each)) if each else set()
    return {name: sum(one[name] for one in each) for name in classes() if name in common}


def _of_launch(metrics: Mapping[str, str], comma: bool) -> dict[str, float]:
    found = {}
    for name, wanted in classes().items():
        counts = [_count(metrics, spellings, comma) for spellings in wanted]
        if all(count is not None for count in counts):
            found[name] = sum(count for count in counts if count is not None)
    return found


def _count(metrics: Mapping[str, str], spellings: Iterable[str], comma: bool) -> float | None:
    for name in spellings:
        try:
            count = printed_number(metrics[name], comma)
        except (KeyError, ValueError):
            continue
        if np.isfinite(count):
            return count
    return None


def noted(counts: Mapping[str, float]) -> str:
    """Return counts by class as the end of a row's notes, "" without any."""
    return "".join(f"; {NOTE}{name}={count:.9g}" for name, count in counts.items())


def counted(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return what the notes of a table's rows count, (rows,) of each class that any row counts; nan where a row does
    not."""
    if "notes" not in table:
        return {}
    notes = table["notes"].astype("string").fillna("")
    found = {
        name: pd.to_numeric(notes.str.extract(rf"\b{NOTE}{name}=([0-9.e+]+)")[0]).to_numpy(float, na_value=np.nan)
        for name in classes()
    }
    return {name: counts for name, counts in found.items() if np.isfinite(counts).any()}
