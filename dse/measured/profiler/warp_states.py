"""What a profiler saw warps do: shares of Nsight Compute's warp states by class (``data/schema/warp_states.csv``)."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.base.printed_numbers import printed_number
from dse.measured.nsight_export import ProfiledLaunch, operations

FAMILIES = (
    re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active(?:\.ratio|\.pct)?"),
    re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active(?:\.ratio|\.pct)?"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+?)(?:\.ratio|\.pct)?"),
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(?:\.sum|\.avg)?"),
    re.compile(r"Stall (\w[\w ]+)"),
)
"""Names of metrics that count warp states, whole; the first family of which an export has any is read."""

NOT_ISSUED = "_not_issued"
"""End of the name of a metric of samples in which the scheduler issued nothing: part of another's."""

MISSING = ("", "n/a", "nan")
"""Cells of what a profiler did not measure."""

NOT_MODELLED = "not modelled"

WANTED = "profile with --section WarpStateStats or --set full, export with 'ncu --csv --page raw'"


@cache
def classes() -> dict[str, str]:
    """Return the class of each warp state: what a model's causes are compared by."""
    return {row["state"]: row["class"] for row in read_table("schema/warp_states.csv")}


def states(metrics: Mapping[str, str], comma: bool = False) -> dict[str, float]:
    """Return how much a launch's warps were in each state, in the unit of the first family of FAMILIES that it has.

    Empty cells and metrics that count no state are left out. ``comma``: whether numbers have a decimal comma. Raises
    ValueError with the metric's name where a state's cell is no number.
    """
    for family in FAMILIES:
        named = ((family.fullmatch(name), name, value) for name, value in metrics.items())
        found = {
            match[1].lower().replace(" ", "_"): _number(name, value, comma)
            for match, name, value in named
            if match and not match[1].endswith(NOT_ISSUED) and value.strip().lower() not in MISSING
        }
        if found:
            return found
    return {}


def class_shares(path: Path) -> list[dict[str, float]]:
    """Return for each row of an export what share of its warps' time each class takes, in the order of its rows.

    Launches of one row count by their time. Raises InputError where a launch has no warp states, or one that is not
    known.
    """
    return [_of_row(path, launches) for launches, _ in operations(path)]


def _of_row(path: Path, launches: Sequence[ProfiledLaunch]) -> dict[str, float]:
    shares = dict.fromkeys(classes().values(), 0.0)
    total = sum(launch.us for launch in launches)
    for launch in launches:
        found = _states_of(path, launch)
        whole = sum(found.values())
        if whole <= 0:
            raise InputError(f"{path}: kernel {launch.number} has no warp states; {WANTED}")
        for state, value in found.items():
            if state not in classes():
                wrong = f"{path}: kernel {launch.number}: warp state {state!r} is not known"
                raise InputError(f"{wrong}; {accepted(state, classes())}")
            shares[classes()[state]] += value / whole * launch.us / total
    return shares


def _states_of(path: Path, launch: ProfiledLaunch) -> dict[str, float]:
    try:
        return states(launch.metrics, launch.comma)
    except ValueError as wrong:
        raise InputError(f"{path}: kernel {launch.number}: {wrong}") from None


def _number(metric: str, cell: str, comma: bool) -> float:
    try:
        number = printed_number(cell, comma)
    except ValueError:
        number = float("nan")
    if not (isfinite(number) and number >= 0):
        raise ValueError(f"{metric} is {cell!r}; give a number from 0 on")
    return number
