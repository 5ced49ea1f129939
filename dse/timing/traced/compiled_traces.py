"""Traces compiled for designs: the linear forms of their stalls, found on designs like those to be evaluated."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from dse.hardware.gpu import Gpu
from dse.timing.timing import TimingModel
from dse.timing.traced.models import trace_latencies
from dse.traces.latency_forms import samples
from dse.traces.traced_kernel import TracedKernel, with_forms
from dse.workload.operator import Candidate, Operator
from dse.workload.workload import Workload


def compiled(workload: Workload, model: TimingModel, draw: Callable[[int], Gpu]) -> Workload:
    """Return a workload with each traced kernel in its compiled form, where one serves the designs.

    ``draw`` returns so many of these designs, drawn at random, fields of shape (designs,). A workload without traces is
    returned as it is.
    """

    def of(operator: Operator) -> Operator:
        candidate = operator.candidates[0]
        if not isinstance(candidate.kernel, TracedKernel):
            return operator
        return replace(operator, candidates=(Candidate(candidate.label, _compiled(candidate.kernel, model, draw)),))

    return replace(workload, operators=tuple(map(of, workload.operators))) if workload.recorded else workload


def _compiled(kernel: TracedKernel, model: TimingModel, draw: Callable[[int], Gpu]) -> TracedKernel:
    count = samples(kernel.segments)
    with jax.enable_x64(True):
        latencies = jax.jit(lambda gpu: trace_latencies(model, kernel, gpu))(draw(2 * count))
    if latencies is None:
        return kernel
    latency = np.asarray(latencies)
    usable = np.all(np.isfinite(latency) & (latency >= 0), axis=0)  # a link may lead out of an attribute's range
    return with_forms(kernel, latency[:, :count][:, usable[:count]], latency[:, count:][:, usable[count:]])
