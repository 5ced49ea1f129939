"""How sure the answer is: the interval of each objective, and the designs that it cannot tell from the baseline."""

import numpy as np

from dse.base.error_interval import SHARE
from dse.evaluate.metric_error import (
    ON_POWER,
    WITHOUT_EXPERTS,
    MetricError,
    beyond,
    objective_error,
    power_error_interval,
    time_error_interval,
)
from dse.grid.result import SweepResult
from dse.reports.common.words import joined, label
from dse.reports.sweep.data import chosen_designs, measured_baseline
from dse.space.metrics import named_metric
from dse.space.space import Objective, Space

SHARED_ERRORS = (
    "Told from the baseline: as if the errors of two designs were independent. What they share (calibration, kernels, "
    "an engine's host) cancels between them, so that their order may hold where intervals cannot tell them apart."
)

WATTS_LIMITED = "No board that is held to its limit draws more than its tdp_w, whatever an interval of watts says."


def metric_errors(space: Space) -> list[MetricError]:
    """Return the error of each objective."""
    return [objective_error(space, objective) for objective in space.objectives]


def with_interval(space: Space) -> list[tuple[Objective, MetricError]]:
    """Return the objectives that carry an interval."""
    return [(o, t) for o, t in zip(space.objectives, metric_errors(space), strict=True) if t.error_interval is not None]


def like_baseline(result: SweepResult, objective: Objective, error: MetricError) -> np.ndarray:
    """Return which designs of the front the interval of an objective cannot tell from the baseline."""
    base = measured_baseline(result)
    if base.empty:
        return np.zeros(len(result.front), dtype=bool)
    before = float(base[objective.name].iloc[0])
    return np.array([error.same(float(value), before) for value in result.front[objective.name]], dtype=bool)


def error_notes(result: SweepResult) -> list[str]:
    """Return what is known of errors: intervals, what they cannot tell apart, what lies beyond the measured GPUs.

    Errors of one model on two designs go together in part, which no calibration here tells: two designs are held for
    alike where the interval of their ratio, of independent errors, holds 1.
    """
    notes = []
    with_errors = with_interval(result.space)
    for objective, error in with_errors:
        assert error.error_interval is not None
        notes.append(
            f"{_capital(label(objective))}: {100 * SHARE:.0f} % of measured values lie {error.word} from the predicted "
            f"({'; '.join(filter(None, (error.error_interval.source, error.scope)))}){_like(result, objective, error)}."
        )
    if result.space.power.limit and any(named_metric(o.expression.text)[1] in ON_POWER for o, _ in with_errors):
        notes.append(WATTS_LIMITED)
    if any("cannot be told" in note for note in notes):
        notes.append(SHARED_ERRORS)
    without = [
        label(o)
        for o, t in zip(result.space.objectives, metric_errors(result.space), strict=True)
        if t.error_interval is None and not t.exact
    ]
    if without:
        notes.append(f"No interval, since uncalibrated: {joined(without)}.")
    return notes + _beyond(result.space)


def _like(result: SweepResult, objective: Objective, error: MetricError) -> str:
    """What of the front and of the chosen designs the interval cannot tell from the baseline."""
    if error.scope in WITHOUT_EXPERTS:
        return "; since it leaves out the products of experts, it tells no designs apart"
    same = like_baseline(result, objective, error)
    if not same.any():
        return ""
    chosen = chosen_designs(result).query("position >= 0")
    letters = [row["letter"] for _, row in chosen.iterrows() if same[row["position"]]]
    named = f", {joined(letters)} among them," if letters else ""
    return f"; {same.sum():,} of {len(same):,} Pareto designs{named} cannot be told from the baseline by it"


def _beyond(space: Space) -> list[str]:
    """What the axes ask beyond the GPUs that the models were held against."""
    notes = []
    for what, interval in (("Times", time_error_interval(space)), ("Watts", power_error_interval(space))):
        outside = beyond(space, interval) if interval else []
        if interval and outside:
            gpus = joined(sorted(set(interval.gpus)))
            notes.append(f"{what} were measured on {gpus}; beyond them, and so extrapolated: {joined(outside)}.")
    return notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
