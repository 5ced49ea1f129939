"""The result of a sweep: its front, its statistics, and where its designs are."""

from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dse.base.brief import block, with_table
from dse.base.drawn import Drawn
from dse.base.error_interval import SHARE
from dse.base.errors import InputError, expect, expect_one_of
from dse.comparison.ratio_error import RatioErrors, probability_on_front
from dse.comparison.space_ratios import space_ratio_errors
from dse.evaluate.metric_error import objective_error
from dse.grid.store import reading
from dse.space.space import Space

LIBRARIES = ("jax", "jaxlib", "numpy", "pandas", "pyarrow", "equinox", "moocore", "plotly")


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a result depends on."""
    return {name: version(name) for name in LIBRARIES}


@dataclass(frozen=True)
class SweepResult(Drawn):
    """The result of a sweep or of a search."""

    space: Space
    baseline: pd.DataFrame  # one row, the base GPU itself
    front: pd.DataFrame  # the non-dominated feasible designs, in grid order
    # A row an axis value and objective: at_baseline (that axis alone differs from the base GPU; empty where that design
    # cannot run), median and best of all feasible designs with that value (of a search: no median, best of its front).
    axis_effects: pd.DataFrame
    sample: pd.DataFrame  # feasible designs that the pictures show
    n: int  # designs evaluated
    n_feasible: int
    infeasible: dict[str, int]  # reason -> designs
    seconds: dict[str, float]  # compile, evaluate, write [s]
    folder: Path | None = None
    libraries: dict[str, str] = field(default_factory=library_versions)
    table: pa.Table | None = field(default=None, repr=False)  # every design, where no folder holds them
    keep: str = "all"  # or "front", where the other designs were not kept
    top: pd.DataFrame = field(default_factory=pd.DataFrame)  # the best of each objective (best_in); empty of a search
    notes: tuple[str, ...] = ()  # what happened on the way, such as designs evaluated again
    computed_by: str = ""  # the version that computed it, where that is another one or had other inputs

    def __repr__(self) -> str:
        counts = f"{self.n:,} designs, {self.n_feasible:,} feasible, {len(self.front):,} on the front"
        return block(self, f"{self.space.name!r}: {counts}", *([self._spans()] if len(self.front) else []))

    def _repr_html_(self) -> str:
        return with_table(self, self.shown)

    @property
    def shown(self) -> pd.DataFrame:
        """The front by its axes and objectives alone, which a notebook shows."""
        names = [*(axis.name for axis in self.space.axes), *(o.name for o in self.space.objectives)]
        return self.front[list(dict.fromkeys(names))]

    def _spans(self) -> str:
        """The lowest and highest value of each objective on the front."""
        columns = [(o.name, self.front[o.name], o.unit) for o in self.space.objectives]
        return ", ".join(
            f"{name} {values.min():.4g} to {values.max():.4g} {unit}".rstrip() for name, values, unit in columns
        )

    def pareto(self) -> pd.DataFrame:
        """Return the non-dominated designs: axes, objectives, metrics and stall stacks, in grid order."""
        return self.front

    def to_frame(self) -> pd.DataFrame:
        """Return the non-dominated designs, as :meth:`pareto` does."""
        return self.front

    def points(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return every design (or only ``columns`` of each), a row a design in grid order.

        Raises InputError where they were not kept, or have no such column.
        """
        if self.keep == "front":
            raise InputError(f"{self.space.name}: only the front was kept; sweep with --keep all for every design")
        expect("columns", columns, list | tuple | pd.Index | None, "give a list of names, as ['die_mm2']")
        columns = None if columns is None else list(columns)
        if self.table is not None:
            _refuse_unknown(columns, self.table.schema)
            return (self.table.select(columns) if columns else self.table).to_pandas()
        assert self.folder is not None
        path = self.folder / "points.parquet"
        with reading(path, "sweep or search again"):
            _refuse_unknown(columns, pq.read_schema(path))
            return pq.read_table(path, columns=columns).to_pandas()

    @property
    def calibration(self) -> str:
        """Name of the timing model's calibration, or "uncalibrated"."""
        return self.space.model.calibration

    @property
    def n_off_grid(self) -> int:
        """How many members of the front refinement found between the grid's values."""
        return int(self.front["off_grid"].sum()) if "off_grid" in self.front else 0

    @cached_property
    def ratio_errors(self) -> list[RatioErrors]:
        """The errors of ratios of each objective: the baseline's place is 0, if it has results, the front follows."""
        return space_ratio_errors(self.space, self.measured_baseline, self.front)

    @property
    def measured_baseline(self) -> pd.DataFrame:
        """The baseline's row, or none where the base GPU has no result (an operator has no kernel that runs)."""
        names = [o.name for o in self.space.objectives]
        return self.baseline[np.isfinite(self.baseline[names].to_numpy(float)).all(axis=1)]

    @cached_property
    def probability_on_front(self) -> np.ndarray | None:
        """How probably each member belongs on the front, (front,); None where an objective has no errors of ratios."""
        return probability_on_front([one.take(slice(len(self.measured_baseline), None)) for one in self.ratio_errors])

    def summary(self) -> dict[str, Any]:
        """Return the JSON document of ``dse sweep --json``."""
        objectives = [{"name": o.name, "unit": o.unit, "direction": o.direction} for o in self.space.objectives]
        return {
            "n": self.n,
            "n_feasible": self.n_feasible,
            "infeasible": self.infeasible,
            "objectives": objectives,
            "baseline": records(self.baseline)[0],
            "pareto": records(self.front.assign(probability_on_front=self.probability_on_front)),
            "ratios_unknown": self._ratios_unknown(),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "calibration": self.calibration,
            "intervals": self.intervals(),
            **({"top": records(self.top)} if self.keep == "front" else {}),
        }

    def _ratios_unknown(self) -> dict[str, str]:
        """Why ratios of an objective have no interval, of those that have none."""
        both = zip(self.space.objectives, self.ratio_errors, strict=True)
        return {objective.name: one.reason for objective, one in both if one.reason}

    def intervals(self) -> dict[str, dict[str, Any] | None]:
        """Return of each objective where 80 % of measured over predicted lie; None where no calibration says so."""
        errors = {o.name: objective_error(self.space, o) for o in self.space.objectives}
        return {
            name: (u := error.error_interval)
            and {
                "low": round(u.low, 4),
                "high": round(u.high, 4),
                "share": SHARE,
                "source": "; ".join(filter(None, (u.source, error.scope))),
            }
            for name, error in errors.items()
        }


def _refuse_unknown(columns: list[str] | None, schema: pa.Schema) -> None:
    for name in columns or ():
        expect_one_of("column", name, schema.names)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON values; an empty cell is None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{key: _plain(value) for key, value in row.items()} for row in plain.to_dict("records")]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return value.item() if hasattr(value, "item") else value
