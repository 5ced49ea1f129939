"""Traces compiled for the designs of a space: the forms of their stalls, found on designs drawn from its grid."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from dse.hardware.gpu import Gpu
from dse.space.axis import Axis
from dse.space.links import Links, with_links
from dse.timing.timing import TimingModel
from dse.traces.latency_forms import samples
from dse.traces.traced_kernel import TracedKernel, with_forms
from dse.workload.operator import Candidate, Operator
from dse.workload.workload import Workload


def compiled(
    workload: Workload, model: TimingModel, base: Mapping[str, float], axes: Sequence[Axis], links: Links
) -> Workload:
    """Return a workload of traces, each with its compiled form where one serves the designs of the grid."""

    def of(operator: Operator) -> Operator:
        (candidate,) = operator.candidates
        assert isinstance(candidate.kernel, TracedKernel)
        kernel = _compiled(candidate.kernel, model, base, axes, links)
        return replace(operator, candidates=(Candidate(candidate.label, kernel),))

    return replace(workload, operators=tuple(map(of, workload.operators)))


def _compiled(
    kernel: TracedKernel, model: TimingModel, base: Mapping[str, float], axes: Sequence[Axis], links: Links
) -> TracedKernel:
    count = samples(kernel.segments)
    with jax.enable_x64(True):
        found = jax.jit(lambda gpu: model.trace_latencies(kernel, gpu))(_drawn(base, axes, links, 2 * count))
    if found is None:
        return kernel
    latency = np.asarray(found)
    usable = np.all(np.isfinite(latency) & (latency >= 0), axis=0)  # a link may lead out of an attribute's range
    return with_forms(kernel, latency[:, :count][:, usable[:count]], latency[:, count:][:, usable[count:]])


def _drawn(base: Mapping[str, float], axes: Sequence[Axis], links: Links, count: int) -> Gpu:
    """Return designs of the grid drawn at random, the same every time."""
    draw = np.random.default_rng(0)
    columns = with_links(base, links, {axis.name: draw.choice(np.asarray(axis.numbers), count) for axis in axes})
    values = {**base, **columns}
    return Gpu.from_attributes({name: jnp.asarray(np.broadcast_to(x, (count,)), float) for name, x in values.items()})
