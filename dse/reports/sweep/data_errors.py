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
from dse.reports.common.words import capital, joined, label
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.data_ratios import ORDER, front_note
from dse.space.metrics import named_metric
from dse.space.space import Objective, Space

WATTS_LIMITED = "No board that is held to its limit draws more than its tdp_w, whatever an interval of watts says."


def metric_errors(space: Space) -> list[MetricError]:
    """Return the error of each objective."""
    return [objective_error(space, objective) for objective in space.objectives]


def with_interval(space: Space) -> list[tuple[Objective, MetricError]]:
    """Return the objectives that carry an interval."""
    return [(o, t) for o, t in zip(space.objectives, metric_errors(space), strict=True) if t.error_interval is not None]


def like_baseline(result: SweepResult, objective: Objective) -> np.ndarray:
    """Return which designs of the front the interval of an objective's ratio cannot tell from the baseline."""
    place = [o.name for o in result.space.objectives].index(objective.name)
    errors = result.ratio_errors[place]
    if result.measured_baseline.empty or errors.loading is None:
        return np.zeros(len(result.front), dtype=bool)
    return np.asarray(errors.inseparable(0, np.arange(1, len(result.front) + 1)), dtype=bool)


def error_notes(result: SweepResult) -> list[str]:
    """Return what is known of errors: intervals, what they cannot tell apart, what lies beyond the measured GPUs.

    Two designs are held for alike where the interval of their ratio holds 1 (:mod:`dse.comparison.ratio_error`).
    """
    notes = []
    with_errors = with_interval(result.space)
    for objective, error in with_errors:
        assert error.error_interval is not None
        notes.append(
            f"{capital(label(objective))}: {100 * SHARE:.0f} % of measured values lie {error.word} from the predicted "
            f"({'; '.join(filter(None, (error.error_interval.source, error.scope)))}){_like(result, objective, error)}."
        )
    if result.space.power.limit and any(named_metric(o.expression.text)[1] in ON_POWER for o, _ in with_errors):
        notes.append(WATTS_LIMITED)
    if any(one.loading is not None for one in result.ratio_errors):
        notes += [ORDER, *front_note(result)]
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
    same = like_baseline(result, objective)
    if not same.any():
        return ""
    chosen = chosen_designs(result).query("position >= 0")
    letters = [row["letter"] for _, row in chosen.iterrows() if same[row["position"]]]
    named = f", {joined(letters)} among them," if letters else ""
    return f"; {same.sum():,} of {len(same):,} Pareto designs{named} cannot be told from the baseline by their ratio"


def _beyond(space: Space) -> list[str]:
    """What the axes ask beyond the GPUs that the models were held against."""
    notes = []
    for what, interval in (("Times", time_error_interval(space)), ("Watts", power_error_interval(space))):
        outside = beyond(space, interval) if interval else []
        if interval and outside:
            gpus = joined(sorted(set(interval.gpus)))
            notes.append(f"{what} were measured on {gpus}; beyond them, and so extrapolated: {joined(outside)}.")
    return notes
