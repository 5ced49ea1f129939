"""Hyper-connections: several residual streams, mixed into one before each half of a layer, and its result into all.

Zhu and others, *Hyper-Connections* (2024), 3; DeepSeek-AI, *DeepSeek-V4* (2026), 2.2 (inference/model.py, hc_pre and
hc_post). A small product of all streams of a token gives the weights. What makes them doubly stochastic, some steps on
a few numbers a token, is fused into the mixing and left out, as are the weights' parameters (below 0.1 %).
"""

from collections.abc import Iterator

from dse.workload.networks.step import Step
from dse.workload.operator import Operator


def mixed(step: Step, name: str, streams: int) -> Iterator[Operator]:
    """Yield what makes one stream of ``streams`` for the half of a layer called ``name``: weights, sum, norm."""
    yield step.unquantised(f"{name}_stream_weights", (2 + streams) * streams, streams * step.hidden)
    far = {"input_distance": step.layer_bytes}
    yield step.vector(f"{name}_mix", "add", step.rows, step.hidden, inputs=float(streams), outputs=1.0, **far)
    yield step.vector(f"{name}_norm", step.norm, step.rows, step.hidden)


def spread(step: Step, name: str, streams: int) -> Operator:
    """Return what adds the result of a half to every stream, each a mix of all before it."""
    inputs = {"inputs": streams + 1.0, "outputs": float(streams)}
    return step.vector(f"{name}_spread", "add", step.rows, step.hidden, **inputs)
