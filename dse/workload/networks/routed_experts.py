"""The kernels of a mixture's routed experts: choice, permutation, grouped products, activation, weighted sum."""

from collections.abc import Iterator

from dse.base.constants import constant
from dse.hardware.data_types import element_bytes
from dse.workload.networks.mlp_products import mlp_products
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.collective import all_to_all_operator
from dse.workload.operators.expert_rows import ExpertRows

SORTED = constant("expert_sort_arrays")
"""Arrays that sorting (token, expert) pairs by expert passes."""


def routed_experts(
    step: Step, width: int, gated: bool, activation: str, rows: ExpertRows, split: int = 1
) -> Iterator[Operator]:
    """Yield what runs on a GPU for its experts' ``rows``, from the router's logits to the sum over a token's experts.

    ``width`` [element] of an expert, whose columns ``split`` GPUs share out.
    """
    pairs, columns, tokens = rows.rows, width // split, step.rows
    yield step.vector("expert_choice", "softmax", tokens, rows.experts)
    yield from _sent(step, "expert_dispatch", rows, step.precision.activations)
    yield step.vector("expert_sort", "copy", SORTED * pairs, 1.0)
    yield step.vector("expert_permute", "copy", pairs, step.hidden)
    yield from mlp_products(
        step, "expert_", columns, gated, activation, rows.mean, rows.distinct, activated=pairs, groups=rows
    )
    yield from _sent(step, "expert_combine", rows, step.precision.output)
    arrays = rows.chosen if step.replicas > 1 else max(pairs / tokens, 1.0)
    yield step.vector("combine_experts", "add", tokens, step.hidden, inputs=arrays)


def _sent(step: Step, name: str, rows: ExpertRows, dtype: str) -> Iterator[Operator]:
    """Yield the exchange of tokens with the GPUs that hold their experts, where replicas share these out: a GPU sends
    its part of its replica's tokens to those of their experts that are elsewhere."""
    if step.replicas > 1:
        pairs = step.rows / step.gpus * rows.chosen
        sent = pairs * (1.0 - 1.0 / step.ranks) * step.hidden * element_bytes(dtype)
        yield all_to_all_operator(name, sent, step.ranks, step.phase)
