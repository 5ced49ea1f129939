"""Refinement of a finished sweep's front between the grid's values, and the files that it rewrites."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from dse.grid.result import SweepResult
from dse.grid.store import provenance, write_json, write_table
from dse.pareto.gradient import Refinement, refine
from dse.space.axis import Axis


def refine_sweep(result: SweepResult) -> tuple[SweepResult, Refinement]:
    """Return a sweep with its front refined (:mod:`dse.pareto.gradient`), and the refinement.

    Where the sweep has a folder, ``pareto.parquet`` then holds the refined front with its column ``off_grid``, and
    ``run.json`` what was gained.
    """
    space = result.space
    space.refuse_refinement(True)
    refinement = refine(space, {axis.name: _numbers(axis, result.front[axis.name]) for axis in space.axes})
    if result.folder is not None:
        write_table(result.folder / "pareto.parquet", refinement.table, provenance(space))
        path = result.folder / "run.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        write_json(path, document | {"n_pareto": len(refinement.table), "refinement": refinement.record()})
    return replace(result, front=refinement.table.to_pandas()), refinement


def _numbers(axis: Axis, values: pd.Series) -> np.ndarray:
    """Return the numbers of an axis's values as a table holds them."""
    numbers = dict(zip(axis.values, axis.numbers, strict=True))
    return np.asarray([numbers[value] for value in values], float)
