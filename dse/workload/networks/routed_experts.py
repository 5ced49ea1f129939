"""The kernels of a mixture's routed experts: choice, permutation, grouped products, activation, weighted sum."""

from collections.abc import Iterator
from dataclasses import replace

from dse.base.constants import constant
from dse.hardware.data_types import element_bytes
from dse.workload.kernel import Kernel
from dse.workload.networks.mlp_products import mlp_products
from dse.workload.networks.step import Step
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.collective import all_to_all_operator
from dse.workload.operators.expert_products import ExpertKernels, expert_kernels
from dse.workload.operators.expert_rows import ExpertRows

SORTED = constant("expert_sort_arrays")
"""Arrays that sorting (token, expert) pairs by expert passes."""


def routed_experts(
    step: Step, width: int, gated: bool, activation: str, rows: ExpertRows, split: int = 1
) -> Iterator[Operator]:
    """Yield what runs on a GPU for its experts' ``rows``, from the router's logits to the sum over a token's experts.

    ``width`` [element] of an expert, whose columns ``split`` GPUs share out.
    """
    columns, own = width // split, experts_library(step)
    rows = own.rows_of(rows, columns) if own else rows
    pairs, passed = rows.rows, rows.rows
    tokens, arrays = step.rows, rows.chosen if step.replicas > 1 else max(pairs / step.rows, 1.0)
    if own and own.gathers and step.replicas == 1:
        tokens, arrays = rows.met if own.strays else step.rows, float(rows.chosen)
        passed = tokens * arrays
    yield step.vector("expert_choice", "softmax", step.rows, rows.experts)
    yield from _sent(step, "expert_dispatch", rows, step.precision.activations)
    sort = step.vector("expert_sort", "copy", SORTED * pairs, 1.0)
    waits = own.expert_waits * rows.experts + own.pair_waits * pairs / 1000.0 if own else 0.0
    yield _with_costs(sort, own.launches, waits) if own else sort
    if own is None or not own.gathers:
        yield _stretched(step.vector("expert_permute", "copy", pairs, step.hidden), own)
    products = mlp_products(
        step, "expert_", columns, gated, activation, rows.mean, rows.distinct, activated=passed, groups=rows
    )
    fused = own is not None and own.fuses
    yield from (_stretched(one, own) for one in products if one.kind == "gemm" or not fused)
    yield from _sent(step, "expert_combine", rows, step.precision.output)
    yield _stretched(step.vector("combine_experts", "add", tokens, step.hidden, inputs=arrays), own)


def experts_library(step: Step) -> ExpertKernels | None:
    """Return what the step's library runs for products of experts; None where it has none of its own."""
    target, types = step.target, step.precision
    library = target.library.framework
    return expert_kernels(types.activations, types.weights, target.capabilities, target.warpgroup, library)


def _with_costs(operator: Operator, launches: float, waits: float) -> Operator:
    """Return an operator whose kernels stand for ``launches`` that wait for memory ``waits`` times more in a row."""
    return _changed(operator, launches=launches, serial_waits=waits)


def _stretched(operator: Operator, own: ExpertKernels | None) -> Operator:
    """A pass over activations with its library's costs; products have theirs already."""
    return operator if own is None or operator.kind == "gemm" else _changed(operator, stretch=own.stretch)


def _changed(operator: Operator, **numbers: float) -> Operator:
    def changed(candidate: Candidate) -> Candidate:
        assert isinstance(candidate.kernel, Kernel)  # of passes all are
        return replace(candidate, kernel=replace(candidate.kernel, **numbers))

    return replace(operator, candidates=tuple(map(changed, operator.candidates)))


def _sent(step: Step, name: str, rows: ExpertRows, dtype: str) -> Iterator[Operator]:
    """Yield the exchange of tokens with the GPUs that hold their experts, where replicas share these out: a GPU sends
    its part of its replica's tokens to those of their experts that are elsewhere."""
    if step.replicas > 1:
        pairs = step.rows / step.gpus * rows.chosen
        sent = pairs * (1.0 - 1.0 / step.ranks) * step.hidden * element_bytes(dtype)
        yield all_to_all_operator(name, sent, step.ranks, step.phase)
