"""What a fit of power coefficients answers, whichever model they are of: a document, and a TOML file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.error_interval import ErrorInterval
from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.coefficient_file import write_calibration


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
            "notes": self.notes,
        }

    def write(self, path: Path) -> None:
        """Write the fitted coefficients as TOML."""
        errors = {k: v for k, v in self.models[0].items() if isinstance(v, float)}
        write_calibration(
            path, self.kind, self.calibration, self.table, self.table_sha256, self.coefficients, errors, self.left_out
        )
