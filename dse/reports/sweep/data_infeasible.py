"""Designs that break a constraint, drawn grey: a sample of those that have results."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dse.grid.result import SweepResult
from dse.grid.store import reading

REFUSED = 3_000
"""Designs that cannot be had drawn, at most."""


def infeasible_designs(result: SweepResult) -> pd.DataFrame:
    """Return designs that break a constraint, evenly of all in grid order: axes, objectives and ``reason``.

    Those that cannot run have no results and are left out, and so are all where only the front was kept.
    """
    objectives = list(dict.fromkeys(o.name for o in result.space.objectives))
    names = list(dict.fromkeys([*(axis.name for axis in result.space.axes), *objectives, "feasible", "reason"]))
    step, seen, found = max(1, -(-(result.n - result.n_feasible) // REFUSED)), 0, []
    for table in _tables(result, names):
        refused = table.filter(pa.array(~np.asarray(table["feasible"])))
        frame = refused.take(np.arange(-seen % step, len(refused), step)).to_pandas()
        seen += len(refused)
        found.append(frame[frame[objectives].notna().all(axis=1)])
    return pd.concat(found) if found else pd.DataFrame({name: [] for name in names})


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
