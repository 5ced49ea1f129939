"""Why a step of an attribute changes a result by something else than its derivative promises."""

import numpy as np

from dse.evaluate.evaluation import WorkloadResult
from dse.space.metrics import PHASE_OF
from dse.workload.workload import Workload

LIMIT_BINDS = 0.9999
"""Share of the requested clock below which the power limit binds."""


def why(result: WorkloadResult, design: int, metric: str, promised: np.ndarray) -> str:
    """Return what changes between design 0 and ``design``, of the operator that is farthest from its promise.

    ``promised`` (operators,) [1]: the factor on each launch's time by its derivative, or on its energy where
    ``metric`` is ``energy_j``.
    """
    k = _culprit(result, design, metric, promised)
    limit = _power_limit(result, design)
    reasons = [text for text in (_kernel_change(result, design, k), limit) if text]
    if reasons:
        return "; ".join(reasons)
    bound = [result.bound_by(d, k) for d in (0, design)]
    name = result.workload.operators[k].name
    if bound[0] != bound[1]:
        return f"{name} becomes bound by {bound[1]} instead of {bound[0]}"
    return f"the result bends within the step, most in {name}"


def _power_limit(result: WorkloadResult, design: int) -> str:
    """Return a sentence where the power limit binds in one of the two designs alone, else ""."""
    before, after = result.clock[0] < LIMIT_BINDS, result.clock[design] < LIMIT_BINDS
    return "" if before == after else f"the power limit {'lets go' if before else 'sets in'} within the step"


def _kernel_change(result: WorkloadResult, design: int, k: int) -> str:
    """Return what of operator ``k`` changes: its kernel, its waves, its CTAs on an SM; "" where nothing does."""
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
    """Return the operator that differs most from its promise, of the phase that the metric is about."""
    runs = {phase.name: phase.runs for phase in result.workload.phases}
    phase = PHASE_OF.get(metric)
    weights = np.array([o.repeats * runs[o.phase] * (phase in (None, o.phase)) for o in result.workload.operators])
    values = result.joules if metric == "energy_j" else result.microseconds
    return int(np.argmax(np.abs(weights * (values[design] - values[0] * promised))))


def _label(workload: Workload, k: int, candidate: int) -> str:
    return workload.candidate(k, candidate).label
