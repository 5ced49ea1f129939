"""Designs that break a constraint, drawn grey, and why a sweep found none: what the designs have instead."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dse.grid.constraint_check import ConstraintCheck, checked, constraint_checks
from dse.grid.result import SweepResult
from dse.grid.store import reading
from dse.reports.common.words import joined
from dse.space.links import OF_BASE

REFUSED = 3_000
"""Designs that cannot be had drawn, at most."""


def infeasible_designs(result: SweepResult, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return designs that break a constraint, evenly of all in grid order: axes, objectives and ``reason``.

    ``metrics``: more of their results. Those that cannot run have no results and are left out, and so are all where
    only the front was kept.
    """
    objectives = list(dict.fromkeys(o.name for o in result.space.objectives))
    axes = [axis.name for axis in result.space.axes]
    names = list(dict.fromkeys([*axes, *objectives, *metrics, "feasible", "reason"]))
    step, seen, found = max(1, -(-(result.n - result.n_feasible) // REFUSED)), 0, []
    for table in _tables(result, names):
        refused = table.filter(pa.array(~np.asarray(table["feasible"])))
        frame = refused.take(np.arange(-seen % step, len(refused), step)).to_pandas()
        seen += len(refused)
        found.append(frame[frame[objectives].notna().all(axis=1)])
    return pd.concat(found) if found else pd.DataFrame({name: [] for name in names})


def placed_designs(result: SweepResult) -> pd.DataFrame:
    """Return the same where two objectives or more give them a place in a plot, and none of a single objective."""
    designs = infeasible_designs(result)
    return designs if len(result.space.objectives) > 1 else designs.iloc[:0]


def _tables(result: SweepResult, names: list[str]) -> Iterator[pa.Table]:
    """Yield some columns of every design, a part of the grid at a time; nothing where they were not kept."""
    if result.keep == "front" or result.n == result.n_feasible:
        return
    if result.table is not None:
        yield result.table.select(names)
        return
    if result.folder is None:
        return
    with reading(result.folder / "points.parquet"):
        file = pq.ParquetFile(result.folder / "points.parquet")
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=names)


def unmet(result: SweepResult) -> list[str]:
    """Return sentences on the constraints that leave no design; nothing where the sweep found one.

    Where each leaves some, one sentence says how many. What workloads decide is read from the designs that were kept:
    it is left out of a sweep that kept its front alone.
    """
    if not result.front.empty:
        return []
    checks = [_of_results(result, check) for check in constraint_checks(result.space)]
    none = [check.sentence for check in checks if check.sentence]
    known = [f"{check.constraint} leaves {100 * check.share:.2g} %" for check in checks if check.share]
    return none or ([f"no design keeps to all constraints: {joined(known)} of the designs"] if len(known) > 1 else [])


def _of_results(result: SweepResult, check: ConstraintCheck) -> ConstraintCheck:
    """A constraint that no attribute decides, held against the results of the designs."""
    if check.share is not None:
        return check
    constraint = next(one for one in result.space.constraints if one.text == check.constraint)
    metrics = [name for name in constraint.names if not name.startswith(OF_BASE)]
    kept = set(metrics) <= set(result.baseline.columns)  # but for an attribute that no axis moves
    designs = infeasible_designs(result, metrics) if kept else pd.DataFrame()
    if designs.empty:
        return check
    values: Mapping[str, Any] = {name: designs[name].to_numpy(float) for name in metrics}
    base = {OF_BASE + name: float(value) for name, value in result.baseline.iloc[0].items() if _is_number(value)}
    of = "" if len(designs) == result.space.size else f" of {len(designs):,}"
    return checked(constraint, {**values, **base}, of)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)
