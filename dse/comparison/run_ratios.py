"""The ratio of a metric of one workload on two GPUs, and how sure it is."""

from collections.abc import Iterable

import numpy as np

from dse.comparison.ratio_error import Designs, RatioErrors, host_error, ratio_errors, tensor_types
from dse.evaluate.metric_error import MetricError
from dse.evaluate.run import RunResult
from dse.space.expression import parse_expression
from dse.space.metrics import MORE_IS_BETTER, PHASE_OF

WORKLOAD = ""
"""What the one workload of two runs is called: its metrics have plain names."""


def run_ratio_errors(metric: str, first: RunResult, second: RunResult) -> RatioErrors:
    """Return the errors of the ratio of a metric of one workload on two GPUs: places 0 and 1 of what is returned."""
    runs = (first, second)
    numbers = [run.gpu.numbers() for run in runs]
    workload = first.workload
    designs = Designs(
        numbers={key: np.array([one[key] for one in numbers], float) for key in numbers[0]},
        values={metric: np.array([run.metrics[metric][0] for run in runs], float)},
        stacks={WORKLOAD: _stacks(metric, runs)},
        types={WORKLOAD: tensor_types(workload)},
        kernels={WORKLOAD: len(workload.operators)},
        hosts={WORKLOAD: host_error(workload, first.metric_error("time_ms"))},
        cost_slope=lambda: np.zeros(2),
    )
    errors = [run.metric_error(metric) for run in runs]
    sign = -1.0 if metric in MORE_IS_BETTER else 1.0
    return ratio_errors(parse_expression(metric, metric), sign, designs, lambda _: _less_sure(errors))


def _stacks(metric: str, runs: Iterable[RunResult]) -> dict[str, np.ndarray]:
    """The time of both by cause [ms], of the phase that the metric is of, else of all."""
    parts = []
    for run in runs:
        phases = [p for p in run.workload.phases if PHASE_OF.get(metric, p.name) == p.name]
        parts.append([(phase.runs, run.stack(phase.name)) for phase in phases])
    causes = dict.fromkeys(cause for part in parts for _, stack in part for cause in stack)
    return {
        cause: np.array([sum(count * stack.get(cause, 0.0) for count, stack in part) for part in parts])
        for cause in causes
    }


def _less_sure(errors: Iterable[MetricError]) -> MetricError:
    """The error of the one that nothing is known of, else of the first."""
    found = list(errors)
    return next((error for error in found if error.error_interval is None), found[0])
