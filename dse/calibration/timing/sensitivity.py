"""The error of a fit over each parameter, all others held, as the calibration paper draws it (Fig. 4, 8)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.base.compilation import quick_to_compile
from dse.calibration.losses import weighted_mean
from dse.calibration.timing.fit import NAMES, FitRows, fit_rows, parameters, predicted_us, prior_values
from dse.calibration.timing.stages import ATTENTION_BATCH, BATCH, SHORTLIST, SHORTLISTS, StagedFit
from dse.measured.timed_rows import TimedRows

STEPS = 7
"""Values of a parameter, from its lowest to its highest in equal ratios."""


@dataclass(frozen=True)
class Sensitivity:
    """Mean |predicted / measured - 1| [%] of all rows over one parameter: ``values`` and ``errors`` (STEPS,), the
    fitted value and the error there."""

    parameter: str
    unit: str
    values: tuple[float, ...]
    errors: tuple[float, ...]
    fitted: float
    fitted_error: float

    @property
    def reach(self) -> float:
        """How much the error rises at most over the parameter's range [point]."""
        return max(self.errors) - self.fitted_error

    def document(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {
            "parameter": self.parameter,
            "unit": self.unit,
            "values": list(self.values),
            "errors": list(self.errors),
            "fitted": self.fitted,
            "fitted_error": self.fitted_error,
        }


def sensitivities(rows: TimedRows, fit: StagedFit, kind: str) -> tuple[Sensitivity, ...]:
    """Return the sweep of each free parameter of a fit, the one that the error depends on most first.

    The candidates of a row are those that are fastest at the fit; each value chooses the fastest of them.
    """
    free = [one for one in parameters(kind) if one.name in fit.determined.names and one.name != "overhead_us"]
    fitted = np.array([{**prior_values(kind), **fit.values}[name] for name in NAMES])
    swept = np.stack([np.geomspace(one.low, one.high, STEPS) for one in free])
    every = np.tile(fitted, (len(free), STEPS, 1))
    for place, one in enumerate(free):
        every[place, :, NAMES.index(one.name)] = swept[place]
    chosen = rows.shortlist(fit.model, SHORTLISTS.get(kind, SHORTLIST))
    batch = fit_rows(chosen, np.ones(len(rows.table)), False, BATCH.get(kind, ATTENTION_BATCH))
    errors = _errors(np.concatenate([fitted[None], every.reshape(-1, len(NAMES))]), batch)
    own, errors = float(errors[0]), errors[1:].reshape(len(free), STEPS)
    found = [
        Sensitivity(one.name, one.unit, tuple(values), tuple(error), float(fitted[NAMES.index(one.name)]), own)
        for one, values, error in zip(free, swept.tolist(), errors.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.reach))


def _errors(values: np.ndarray, rows: FitRows) -> np.ndarray:
    """Return the mean error [%] at each row of ``values`` (settings, parameters)."""
    program = jax.jit(partial(lax.map, partial(_error, rows)), compiler_options=quick_to_compile())
    return np.asarray(program(jnp.asarray(values, float)), dtype=float)


def _error(rows: FitRows, values: Array) -> Array:
    return 100.0 * weighted_mean(jnp.abs(predicted_us(values, rows) / rows.measured - 1.0), rows.weights)
