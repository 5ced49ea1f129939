"""The kernels of an MLP: products up, the activation, the product down."""

from collections.abc import Iterator

from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.expert_rows import ExpertRows


def mlp_products(
    step: Step,
    prefix: str,
    columns: int,
    gated: bool,
    activation: str,
    rows: float,
    batch: float,
    filled: float = 1.0,
    *,
    activated: float,
    groups: ExpertRows | None = None,
) -> Iterator[Operator]:
    """Yield the operators of ``batch`` MLPs of ``columns`` on this GPU, each of ``rows`` tokens.

    ``filled``: share of the rows that hold a token; ``activated`` tokens in all pass the activation, since products pad
    theirs; ``groups``: rows of the products, where they are of experts. Names begin with ``prefix``.
    """
    up, gates = ("gate_up", 2) if gated else ("up", 1)
    yield from step.gemm(f"{prefix}{up}_projection", rows, gates * columns, step.hidden, batch, filled, groups)
    kernel = "silu_and_mul" if gated else "relu" if activation.startswith("relu") else "gelu"
    yield step.vector(f"{prefix}{activation}", kernel, activated, columns)
    yield from step.gemm(f"{prefix}down_projection", rows, step.hidden, columns, batch, filled, groups)
