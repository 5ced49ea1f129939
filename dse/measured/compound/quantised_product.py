"""A row of a product in narrow types as kernels: the passes over its activations, and the product."""

from typing import Any

from dse.measured.protocol import Protocol, protocol_of
from dse.measured.quantisation_passes import quantises, ways
from dse.measured.row_operator import operator
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.narrow_products import generation_on
from dse.workload.target import Target


def is_quantised(row: Any) -> bool:
    """Return whether a row's time holds passes that quantise its activations."""
    return bool(quantises(row, _way(row)))


def quantised_product(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row: those of its way of quantising, then the product; raises InputError as
    :func:`dse.measured.row_operator.operator`."""
    way, capability = _way(row), target.capabilities[0] if target.capabilities else 0.0
    product = operator(row, capability, way, target.library, target.warpgroup)
    generation = generation_on({"compute_capability": capability, "warpgroup_mma": target.warpgroup})
    how = ways()[quantises(row, way, generation)]
    tokens = row.m * (row.batch if row.batch > 0 else 1.0)
    before = (Candidate("pass", one.kernel(tokens, row.k)) for one in how.passes)
    return (*(Operator("quantise", "elementwise", (candidate,)) for candidate in before), product)


def _way(row: Any) -> Protocol:
    return protocol_of(str(getattr(row, "source", "")))
