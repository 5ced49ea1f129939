"""A row of a mixture's experts as kernels: what the tokens of all ranks cost the busiest of them."""

from dataclasses import replace
from typing import Any

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.measured.row_shape import framework_of, given, notes_of
from dse.workload.dtypes import precision
from dse.workload.networks.routed_experts import routed_experts
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.expert_rows import POWER_LAW, UNIFORM, ExpertRows, checked_routing
from dse.workload.target import Target

MIXTURE = "moe"
"""Operator of the routed experts of a layer: from the router's logits to the weighted sum."""

TIMED_DRAWS = 5.0
"""Draws of a power law's loads that a timed pass goes over (ai-dynamo/aiconfigurator@095f58a5 collector)."""

NOT_GATED = "2 matrices"
"""Words in the notes of experts without a gate."""


def expert_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of experts; raises InputError where its ranks do not divide them."""
    ranks, split = int(given(row, "moe_ep", 1)), int(given(row, "moe_tp", 1))
    experts, chosen, width = int(row.experts), int(row.topk), int(row.inter)
    if experts % ranks or width % split:
        raise InputError(f"{ranks} ranks share out {experts} experts, {split} split {width} columns; give divisors")
    routing = checked_routing(MIXTURE, str(given(row, "distribution", UNIFORM)))
    types = precision(MIXTURE, str(row.dtype))
    rows = ExpertRows(float(row.tokens), experts, chosen, ranks, routing)
    gated = NOT_GATED not in notes_of(row)
    target = replace(target, library=replace(target.library, framework=framework_of(notes_of(row))))
    weights = _used(rows) * (3.0 if gated else 2.0) * row.hidden * width / split * element_bytes(types.weights)
    step = Step(
        "kernel", 1, int(row.tokens), row.tokens, int(row.hidden), "rmsnorm", types, 1, target, weights, weights
    )
    return tuple(routed_experts(step, width, gated, "silu" if gated else "relu2", rows, split))


def _used(rows: ExpertRows) -> float:
    """Experts whose weights are read between two uses of one: the same tokens come again and again, and draws of a
    power law one after the other."""
    draws = TIMED_DRAWS if rows.routing.startswith(POWER_LAW) else 1.0
    return min(rows.local, draws * rows.distinct)
