"""A space that compiles soonest."""

from typing import Any

import pytest


@pytest.fixture
def quick(small: dict[str, Any]) -> dict[str, Any]:
    """One workload and the model that compiles soonest: what a command says and writes does not depend on them."""
    prefill = {"prefill": small["workloads"]["prefill"]}
    return small | {"timing": "roofline", "workloads": prefill, "objectives": small["objectives"][::2]}
