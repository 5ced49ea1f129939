"""Why a result bends within a step, so that its derivative there says something else than the step."""

import numpy as np

from dse.evaluate.evaluation import WorkloadResult
from dse.space.metrics import PHASE_OF
from dse.workload.workload import Workload

HELD = 0.9999
"""Share of the requested clock below which the power limit binds."""


def why(result: WorkloadResult, design: int, metric: str, promised: np.ndarray) -> str:
    """Return what happens on the way from design 0 to ``design``.

    ``promised`` (operators,): the factor on each launch's time by its derivative, or on its energy where ``metric`` is
    ``energy_j``. The launch that differs most from it in the whole workload is named.
    """
    k = _culprit(result, design, metric, promised)
    limit = _power_limit(result, design)
    found = [text for text in (_kernel_change(result, design, k), limit) if text]
    if found:
        return "; ".join(found)
    bound = [result.bound_by(d, k) for d in (0, design)]
    name = result.workload.operators[k].name
    if bound[0] != bound[1]:
        return f"{name} becomes bound by {bound[1]} instead of {bound[0]}"
    return f"the result bends within the step, most in {name}"


def _power_limit(result: WorkloadResult, design: int) -> str:
    """Whether the power limit binds on one side alone."""
    before, after = result.clock[0] < HELD, result.clock[design] < HELD
    return "" if before == after else f"the power limit {'lets go' if before else 'sets in'} within the step"


def _kernel_change(result: WorkloadResult, design: int, k: int) -> str:
    """Whether an operator runs by another kernel, or its grid in other waves, or nothing."""
    workload, (first, second) = result.workload, result.chosen[[0, design], k]
    name = workload.operators[k].name
    if first != second:
        return f"{name} changes from {_label(workload, k, int(first))} to {_label(workload, k, int(second))}"
    grids = [result.waves(d, k) for d in (0, design)]
    count = [float(grid.full + (grid.rest > 0)) for grid in grids]
    ctas = [float(grid.full * grid.resident + grid.rest) for grid in grids]
    if count[0] != count[1]:
        return f"a wave edge: {name} runs in {count[1]:g} instead of {count[0]:g} waves"
    return f"a wave edge: {ctas[1]:g} instead of {ctas[0]:g} CTAs of {name} on an SM" if ctas[0] != ctas[1] else ""


def _culprit(result: WorkloadResult, design: int, metric: str, promised: np.ndarray) -> int:
    """The operator that differs most from its promise, of the phase that the metric is about."""
    runs = {phase.name: phase.runs for phase in result.workload.phases}
    phase = PHASE_OF.get(metric)
    weights = np.array([o.repeats * runs[o.phase] * (phase in (None, o.phase)) for o in result.workload.operators])
    values = result.joules if metric == "energy_j" else result.microseconds
    return int(np.argmax(np.abs(weights * (values[design] - values[0] * promised))))


def _label(workload: Workload, k: int, candidate: int) -> str:
    return workload.candidate(k, candidate).label
