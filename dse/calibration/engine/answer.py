"""The answer of ``dse calibrate engine``: a fitted engine with its errors, what speaks against it, and its file."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.atomic_files import write_whole
from dse.base.skipped_rows import Skipped
from dse.base.toml_text import pairs
from dse.measured.table import OperatorTable
from dse.timing.calibration import LEAST_ROWS
from dse.workload.serving_engine import FITTED, FORMAT, Engine, Fitted

FEW_NAMES = 3
"""Networks that a title names, beyond which it counts them."""

NEARER = 1.0
"""By so much [%] the engine that a fit started from must be nearer to the left-out runs to be told: fits to few runs
are at most a point worse than what they start from (:data:`dse.calibration.timing.rows_fit.SAFE`)."""


@dataclass(frozen=True)
class EngineCost:
    """One cost of an engine: its ``value`` with the ends of its 95 % interval, or why the runs do not tell it.

    ``not_fitted``: it is the other engine's; ``untold``: it was fitted, but other values fit as well, alone or with
    others of a second cost. Either has no interval: both ends are the value.
    """

    name: str
    value: float
    unit: str
    low: float
    high: float
    not_fitted: str = ""
    untold: str = ""

    @property
    def determined(self) -> bool:
        """Whether the runs tell it."""
        return not self.not_fitted and not self.untold


@dataclass(frozen=True)
class Errors:
    """Mean errors [%] of the ``fitted`` runs, of kernels alone on all (``kernels_alone``), and on the runs that no fit
    has seen (None: none) of the fit (``left_out``), of kernels alone and of the engine that it is ``like``."""

    kernels_alone: float
    fitted: float
    left_out: float | None
    kernels_alone_left_out: float | None
    like_left_out: float | None


@dataclass(frozen=True)
class EngineAnswer:
    """A fitted engine: its costs, its errors, and what it was ``fitted`` to.

    ``low``, ``high``: the log errors that 80 % of runs lie between: of ``different_left_out`` runs, no two of one
    shape, where they are enough, else the widest of the judged ones and of an engine that nobody has measured.
    ``doubts``: that times are in another unit; ``notes``: what the runs did not say.
    """

    name: str
    like: Engine
    tables: tuple[OperatorTable, ...]
    rows: int
    rows_left_out: int
    different_left_out: int
    costs: tuple[EngineCost, ...]
    errors: Errors
    low: float
    high: float
    skipped: Skipped
    devices: tuple[str, ...]
    fitted: Fitted
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the engine is called where its interval is told: with the networks it knows."""
        networks = self.fitted.networks
        of = ", ".join(networks) if len(networks) <= FEW_NAMES else f"{len(networks)} networks"
        return f"{self.name}, fitted to {self.rows} runs of {of}"

    @property
    def interval_of(self) -> str:
        """Of what runs the interval is, in words."""
        if self.fitted.judged_by:
            return f"runs left out ({', '.join(self.fitted.judged_by)})"
        return (
            "engines that nobody has measured and of these runs: different runs left out: "
            f"{self.different_left_out}, needed: {LEAST_ROWS}"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against taking the engine: doubts, and that the kernels alone or the engine that it is like come
        nearer to the runs that judge it."""
        off, alone, like = self.errors.left_out, self.errors.kernels_alone_left_out, self.errors.like_left_out
        runs = f"{self.rows_left_out} runs left out"
        if off is None or alone is None:
            off, alone, runs = self.errors.fitted, self.errors.kernels_alone, f"{self.rows} runs that it was fitted to"
        found, told = list(self.doubts), f"on the {runs} the engine is {off:.1f} % off"
        if off > alone:
            found.append(
                f"{told}, the kernels alone {alone:.1f} %: these costs do not carry over to other runs, do "
                "not take them"
            )
        if like is not None and off > like + NEARER:
            found.append(f"{told}, {self.like.name}, which it is like, {like:.1f} %: take that one")
        return tuple(found)

    def to_frame(self) -> pd.DataFrame:
        """Return the costs, a row each."""
        return pd.DataFrame([asdict(cost) | {"determined": cost.determined} for cost in self.costs])

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse calibrate engine --json``."""
        return {
            "name": self.name, "like": self.like.name, "rows": self.rows, "rows_left_out": self.rows_left_out,
            "tables": [{"name": Path(t.path).name, "sha256": t.sha256} for t in self.tables],
            "costs": [{"name": c.name, "value": c.value, "unit": c.unit, "low": c.low, "high": c.high,
                       "determined": c.determined, "note": c.not_fitted or c.untold} for c in self.costs],
            "mape": vars(self.errors), "warnings": list(self.warnings), "notes": list(self.notes),
            "interval_80": [self.low, self.high], "interval_80_of": self.interval_of, "rows_skipped": self.skipped,
        }  # fmt: skip

    def write(self, path: Path) -> None:
        """Write the engine as TOML: a workload's ``engine=`` takes its path."""
        head = {
            "format": FORMAT,
            "engine": self.name,
            "title": self.title,
            "like": self.like.like or self.like.name,  # a shipped one: the file stands by itself
            "date": datetime.now(UTC).date().isoformat(),
            "rows": self.rows,
            "rows_left_out": self.rows_left_out,
            "devices": list(self.devices),
            **{key: getattr(self.fitted, key) for key in FITTED},
        }
        numbers = {c.name: c.value for c in self.costs} | {"low": self.low, "high": self.high}
        lines = [*pairs(head), *pairs(numbers, 6)]
        write_whole(path, "\n".join(lines) + "\n")
