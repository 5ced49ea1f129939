"""What a profiler saw warps do: shares of Nsight Compute's warp states by class (``data/schema/warp_states.csv``)."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
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

NOT_MODELLED = "not modelled"

WANTED = "profile with --section WarpStateStats or --set full, export with 'ncu --csv --page raw'"


@cache
def classes() -> dict[str, str]:
    """Return the class of each warp state: what a model's causes are compared by."""
    return {row["state"]: row["class"] for row in read_table("schema/warp_states.csv")}


def states(metrics: Mapping[str, str]) -> dict[str, float]:
    """Return how much a launch's warps were in each state, in the unit of the first family of FAMILIES that it has.

    Cells that are no number, and metrics that count no state, are left out.
    """
    for family in FAMILIES:
        named = ((family.fullmatch(name), value) for name, value in metrics.items())
        found = {
            match[1].lower().replace(" ", "_"): number
            for match, value in named
            if match and not match[1].endswith(NOT_ISSUED) and (number := _number(value)) is not None
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
        found = states(launch.metrics)
        whole = sum(found.values())
        if whole <= 0:
            raise InputError(f"{path}: kernel {launch.number} has no warp states; {WANTED}")
        for state, value in found.items():
            if state not in classes():
                wrong = f"{path}: kernel {launch.number}: warp state {state!r} is not known"
                raise InputError(f"{wrong}; {accepted(state, classes())}")
            shares[classes()[state]] += value / whole * launch.us / total
    return shares


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
