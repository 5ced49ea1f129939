"""Why a result bends within a step, so that its derivative there says something else than the step."""

import numpy as np

from dse.search.local import PHASE_OF, Judged
from dse.workload.workload import Workload

HELD = 0.9999
"""Share of the requested clock below which the power limit binds."""


def why(workload: Workload, judged: Judged, design: int, metric: str, promised: np.ndarray) -> str:
    """Return what happens on the way from design 0 to ``design``.

    ``promised`` (operators,): the factor on each launch's time by its derivative, or on its energy where ``metric`` is
    ``energy_j``. The launch that differs most from it in the whole workload is named.
    """
    before, after = judged.clock[0] >= HELD, judged.clock[design] >= HELD
    if before != after:
        return f"the power limit {'sets in' if before else 'lets go'} within the step"
    k = _culprit(workload, judged, design, metric, promised)
    name = workload.operators[k].name
    if judged.chosen[design, k] != judged.chosen[0, k]:
        labels = [_label(workload, k, int(judged.chosen[d, k])) for d in (0, design)]
        return f"{name} changes from {labels[0]} to {labels[1]}"
    edge = _wave_edge(judged, design, k)
    if edge:
        return f"a wave edge, {edge} of {name}"
    bound = [judged.bound_by(d, k) for d in (0, design)]
    if bound[0] != bound[1]:
        return f"{name} becomes bound by {bound[1]} instead of {bound[0]}"
    return f"the result bends within the step, most in {name}"


def _culprit(workload: Workload, judged: Judged, design: int, metric: str, promised: np.ndarray) -> int:
    """The operator that differs most from its promise, of the phase that the metric is about."""
    runs = {phase.name: phase.runs for phase in workload.phases}
    phase = PHASE_OF.get(metric)
    weights = np.array([o.repeats * runs[o.phase] * (phase in (None, o.phase)) for o in workload.operators])
    values = judged.joules if metric == "energy_j" else judged.microseconds
    return int(np.argmax(np.abs(weights * (values[design] - values[0] * promised))))


def _label(workload: Workload, k: int, candidate: int) -> str:
    return workload.operators[k].candidates[candidate - workload.slices[k].start].label


def _wave_edge(judged: Judged, design: int, k: int) -> str:
    """How the waves of a grid change, or nothing."""
    count, ctas = (array[[0, design], k] for array in (judged.waves, judged.ctas))
    if count[0] != count[1]:
        return f"{count[1]:g} waves instead of {count[0]:g}"
    return f"the busiest SM holds {ctas[1]:g} CTAs instead of {ctas[0]:g}" if ctas[0] != ctas[1] else ""
