"""Calibration in stages (Asri and others): each parameter is free only in its own, on the rows that expose it.

Launch and latency on short rows, width on compute-bound ones, cache and memory on memory-bound ones, what is left on
all. The last entry, the polish, is no stage of the method: all parameters move again, with priors about the staged
values, so that what staging costs can be seen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.calibration.timing.fit import (
    DETERMINED,
    FIXED,
    NAMES,
    Determined,
    Priors,
    determined,
    fit_rows,
    fit_stage,
    model_of,
    parameters,
    priors,
)
from dse.measured.regimes import LONG_US, SHORT_US, compute_bound
from dse.measured.timed_rows import TimedRows, best
from dse.timing.amali import Amali
from dse.timing.discrepancy import Points

SHORTLIST = 16
"""Candidates of a row that a stage chooses among; drawn anew before each stage."""

BATCH = {"matrix": 128}
ATTENTION_BATCH = 768
"""Multiple to which the rows of a stage are padded: one compiled program for a kind's many implementations."""

SHORTLISTS = {"attention_prefill": 4, "attention_decode": 6, "narrow": 10}
"""Kind -> candidates of a row, SHORTLIST where not named: only splits of the keys differ."""

FEWEST = 20
"""A stage with fewer rows is left out."""


DISCREPANCY = "discrepancy"
"""Name of the stage that :mod:`dse.calibration.timing.discrepancy_fit` adds."""

POLISHES, FIRST_GAIN, GAIN = 8, 0.0, 0.02
"""Polishes at most, each with candidates drawn anew and priors about the last; one that takes less than this share
off the fitted rows' error is not kept, and ends them: the first may gain nothing, but not lose."""

MANY = 200
"""Rows from which on a fit is polished more than once: few rows would drift from the priors that hold them."""

LAUNCH_US = {"attention_prefill": 20.0, "attention_decode": 16.0}
"""Kind -> time below which launches rule its rows [us], SHORT_US where not named: attention is several kernels."""

EXPOSED: dict[str, Callable[[pd.DataFrame, str], pd.Series]] = {
    "launch": lambda t, kind: t["latency_us"] < LAUNCH_US.get(kind, SHORT_US),
    # A decode is never bound by arithmetic, but its tiles are mostly padding: their time shows in long rows.
    "width": lambda t, kind: (compute_bound(t) | (kind == "attention_decode")) & (t["latency_us"] >= LONG_US),
    "memory": lambda t, _: ~compute_bound(t) & (t["latency_us"] >= SHORT_US),
    "rest": lambda t, _: t["latency_us"] > 0,
}
"""Stage -> the rows that expose its parameters."""


@dataclass(frozen=True)
class StageResult:
    """Error after a stage, mean |predicted / measured - 1| [%] over fitted and over left-out families (None: none).

    ``long_*``: of rows from LONG_US on. ``rows`` the stage was fitted on, ``free`` parameters of it.
    """

    name: str
    rows: int
    free: tuple[str, ...]
    fitted: float | None
    left_out: float | None
    long_fitted: float | None
    long_left_out: float | None


@dataclass(frozen=True)
class StagedFit:
    """Fitted values, errors after each stage, what the rows determine, and their times [us];
    ``discrepancy``: what the equations leave of the rows (:mod:`dse.calibration.timing.discrepancy_fit`)."""

    values: dict[str, float]
    stages: tuple[StageResult, ...]
    determined: Determined
    predicted_us: np.ndarray
    discrepancy: Points | None = None

    @property
    def model(self) -> Amali:
        """The timing model of the fit, for its own implementation's kernels."""
        return with_points(self.values, self.discrepancy)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters whose answer is mostly the prior's."""
        return tuple(
            n for n, share in zip(self.determined.names, self.determined.share, strict=True) if share < DETERMINED
        )

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Parameters that ended at a bound."""
        return tuple(n for n, at in zip(self.determined.names, self.determined.bound, strict=True) if at)


def staged_fit(
    rows: TimedRows,
    out: np.ndarray,
    fit_overhead: bool = False,
    report: Callable[[StageResult], None] | None = None,
    kind: str = "matrix",
    start: dict[str, float] | None = None,
    weight: np.ndarray | None = None,
    discrepancy: Points | None = None,
) -> StagedFit:
    """Fit stage after stage; ``out`` (rows,) marks rows that no fit may see; ``kind`` of implementation.

    ``start``: values about which the priors stand, such as those of other GPUs; None: the published ones.
    ``fit_overhead``: the protocol's overhead is free in the first stage; else each row keeps its protocol's own.
    ``weight`` (rows,): what each row counts; None: all alike. ``discrepancy``: a discrepancy that applies all along.
    """
    weight = np.ones(len(out)) if weight is None else weight
    count, size = SHORTLISTS.get(kind, SHORTLIST), BATCH.get(kind, ATTENTION_BATCH)
    stage_of = {p.name: p.stage for p in parameters(kind) if p.stage != FIXED}
    order = [name for name in stage_of if fit_overhead or name != "overhead_us"]
    prior, z, results = priors(kind, start), np.zeros(len(NAMES)), []

    def model(z: np.ndarray, prior: Priors) -> Amali:
        return with_points(_named(z, prior), discrepancy)

    def outcome(name: str, free: set[str], fitted: int, values: dict[str, float]) -> StageResult:
        predicted, _ = best(with_points(values, discrepancy), with_fitted_overhead(rows, values, fit_overhead))
        return errors_after(name, rows.table, out, predicted, tuple(n for n in NAMES if n in free), fitted)

    def add(result: StageResult) -> None:
        results.append(result)
        if report:
            report(result)

    add(outcome("starting values" if start else "published prior", set(), 0, _named(z, prior)))
    for stage, exposed in EXPOSED.items():
        free = {name for name in order if stage_of[name] == stage}
        weights = (exposed(rows.table, kind).to_numpy() & ~out) * weight
        if (weights > 0).sum() < FEWEST:
            continue
        chosen = rows.shortlist(model(z, prior), count)
        z = fit_stage(z, free, prior, fit_rows(chosen, weights, fit_overhead, size))
        add(outcome(stage, free, int((weights > 0).sum()), _named(z, prior)))
    for again in range(POLISHES if (~out).sum() >= MANY else 1):
        about, still = priors(kind, _named(z, prior)), np.zeros_like(z)
        chosen = rows.shortlist(model(still, about), count)
        moved = fit_stage(still, set(order), about, fit_rows(chosen, ~out * weight, fit_overhead, size))
        result = outcome("polish", set(order), int((~out & (weight > 0)).sum()), _named(moved, about))
        gain = GAIN if again else FIRST_GAIN
        if (result.fitted or 0.0) > (1 - gain) * (results[-1].fitted or 0.0):
            break
        prior, z = about, moved
        add(result)
    return _finished(rows, ~out * weight, z, prior, tuple(order), fit_overhead, tuple(results), size, discrepancy)


def with_points(values: dict[str, float], points: Points | None) -> Amali:
    """Return the timing model of fitted values and a discrepancy."""
    return replace(model_of(values), discrepancy=points.record() if points else None)


def _named(z: np.ndarray, prior: Priors) -> dict[str, float]:
    return dict(zip(NAMES, np.asarray(prior.values(jnp.asarray(z))).tolist(), strict=True))


def with_fitted_overhead(rows: TimedRows, values: dict[str, float], fit_overhead: bool) -> TimedRows:
    """Return the rows with the fitted overhead in place of their protocol's, if it is fitted."""
    if not fit_overhead:
        return rows
    table = rows.table.assign(overhead_us=values["overhead_us"])
    return TimedRows(table, rows.gpus, rows.kernels, rows.row, rows.labels)


def errors_after(
    name: str, table: pd.DataFrame, out: np.ndarray, predicted: np.ndarray, free: tuple[str, ...], fitted: int
) -> StageResult:
    """Return what ``predicted`` (rows,) [us] is off by after the stage ``name``, which ``fitted`` rows moved."""
    measured = table["latency_us"].to_numpy()
    error, long = 100 * np.abs(predicted / measured - 1), measured >= LONG_US

    def mean(of: np.ndarray) -> float | None:
        return float(error[of].mean()) if of.any() else None

    return StageResult(name, fitted, free, mean(~out), mean(out), mean(~out & long), mean(out & long))


def _finished(
    rows: TimedRows,
    weights: np.ndarray,
    z: np.ndarray,
    prior: Priors,
    order: tuple[str, ...],
    fit_overhead: bool,
    results: tuple[StageResult, ...],
    size: int,
    discrepancy: Points | None,
) -> StagedFit:
    values = _named(z, prior)
    predicted, _ = best(with_points(values, discrepancy), with_fitted_overhead(rows, values, fit_overhead))
    chosen = rows.shortlist(with_points(values, discrepancy), SHORTLIST)
    outcome = determined(z, set(order), prior, fit_rows(chosen, weights, fit_overhead, size))
    return StagedFit(
        values if fit_overhead else {n: v for n, v in values.items() if n != "overhead_us"},
        results,
        outcome,
        predicted,
        discrepancy,
    )
