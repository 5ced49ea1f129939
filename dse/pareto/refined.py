"""A sweep whose front is refined between the grid's values, and its files."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from dse.grid.result import SweepResult
from dse.grid.store import provenance, write_json, write_table
from dse.pareto.gradient import Refinement, refine
from dse.space.axis import Axis


def refined(result: SweepResult) -> tuple[SweepResult, Refinement]:
    """Return a sweep with its front refined (:mod:`dse.pareto.gradient`), and what refinement found.

    Where the sweep has a folder, ``pareto.parquet`` then holds the refined front with its column ``off_grid``, and
    ``run.json`` what was gained.
    """
    space = result.space
    found = refine(space, {axis.name: _numbers(axis, result.front[axis.name]) for axis in space.axes})
    if result.folder is not None:
        write_table(result.folder / "pareto.parquet", found.table, provenance(space))
        path = result.folder / "run.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        write_json(path, document | {"n_pareto": len(found.table), "refinement": found.record()})
    return replace(result, front=found.table.to_pandas()), found


def _numbers(axis: Axis, values: pd.Series) -> np.ndarray:
    """The numbers of an axis's values as a table holds them."""
    numbers = dict(zip(axis.values, axis.numbers, strict=True))
    return np.asarray([numbers[value] for value in values], float)
