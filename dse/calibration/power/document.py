"""What a fit of power coefficients answers, whichever model they are of: a document, and a TOML file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.error_interval import ErrorInterval
from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.coefficient_file import write_calibration

BEFORE = {"published": "the published coefficients", "priors alone": "the shipped coefficients"}
"""Model that was there before a fit -> in words."""

JUDGED = ("leave_one_benchmark_out", "leave_families_out")
"""Errors on what a fit has not seen."""


@dataclass(frozen=True)
class Answer:
    """A fit and its judgement: ``models`` rows of errors [%], ``notes`` sentences about what they do not say.

    ``strength_by``: how the prior's strength was chosen. ``left_out``: the interval that predictions with these
    coefficients get, None where no model computes with them.
    """

    kind: str
    calibration: str
    table: str
    table_sha256: str
    rows: int
    skipped: dict[str, int]
    strength: float
    strength_by: str
    models: list[dict[str, Any]]
    coefficients: list[Coefficient]
    condition: float | None
    notes: list[str]
    left_out: ErrorInterval | None = None

    @property
    def verdict(self) -> str:
        """What the fit is worth, in a sentence: its error on what no fit has seen beside that of what was there before,
        "" where nothing stands beside it."""
        fit = next((m for m in self.models if m.get("headline")), None)
        before = next((m for m in self.models if m["name"] in BEFORE), None)
        key = next((k for k in JUDGED if fit and before and k in fit and k in before), None)
        if fit is None or before is None or key is None:
            return ""
        was, off = before[key], fit[key]
        numbers = f"{off:.1f} % off on what it has not seen, and {BEFORE[before['name']]} {was:.1f} %"
        if off >= was:
            return f"The fit gained nothing: it is {numbers}. Keep what was there before."
        within = fit["interval"][0] <= was <= fit["interval"][1]
        return f"The fit {'may have gained' if within else 'gained'} {was - off:.1f} points: it is {numbers}."

    def to_frame(self) -> pd.DataFrame:
        """Return the coefficients, a row each."""
        return pd.DataFrame([asdict(c) | {"identified": c.identified} for c in self.coefficients])

    def document(self) -> dict[str, Any]:
        """The answer as one JSON document; errors in percent."""
        rows = [asdict(c) | {"identified": c.identified} for c in self.coefficients]
        return {
            "model": self.kind,
            "calibration": self.calibration,
            "table": self.table,
            "table_sha256": self.table_sha256,
            "n": self.rows,
            "skipped": [{"reason": r, "n": n} for r, n in self.skipped.items()],
            "prior_strength": self.strength,
            "models": self.models,
            "coefficients": rows,
            "not_identified": [c.name for c in self.coefficients if not c.identified],
            "hessian_condition": self.condition,
            "verdict": self.verdict,
            "notes": self.notes,
        }

    def write(self, path: Path) -> None:
        """Write the fitted coefficients as TOML."""
        errors = {k: v for k, v in self.models[0].items() if isinstance(v, float)}
        write_calibration(
            path, self.kind, self.calibration, self.table, self.table_sha256, self.coefficients, errors, self.left_out
        )
