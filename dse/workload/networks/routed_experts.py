"""The kernels of a mixture's routed experts: choice, permutation, grouped products, activation, weighted sum."""

from collections.abc import Iterator

from dse.workload.networks.mlp_kinds import Dense
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.expert_rows import ExpertRows

SORTED = 4.0
"""Arrays that sorting (token, expert) pairs by expert passes: counts, prefix sums, places, and the pairs themselves."""


def routed_experts(step: Step, expert: Dense, rows: ExpertRows) -> Iterator[Operator]:
    """Yield what runs on a GPU for its experts' ``rows``, from the router's logits to the sum over a token's experts.

    ``expert``: one of them, whose columns the step's GPUs share out.
    """
    pairs, columns = rows.rows, expert.ffn // step.gpus
    up, gates = ("gate_up", 2) if expert.gated else ("up", 1)
    yield step.vector("expert_choice", "softmax", rows.tokens, rows.experts)
    yield step.vector("expert_sort", "copy", SORTED * pairs, 1.0)
    yield step.vector("expert_permute", "copy", pairs, step.hidden)
    yield from step.gemm(f"expert_{up}_projection", rows.mean, gates * columns, step.hidden, rows.distinct, 1.0, rows)
    kernel = "silu_and_mul" if expert.gated else "relu" if expert.activation.startswith("relu") else "gelu"
    yield step.vector(f"expert_{expert.activation}", kernel, pairs, columns)
    yield from step.gemm("expert_down_projection", rows.mean, step.hidden, columns, rows.distinct, 1.0, rows)
    inputs = max(pairs / rows.tokens, 1.0)
    yield step.vector("combine_experts", "add", rows.tokens, step.hidden, inputs=inputs)
