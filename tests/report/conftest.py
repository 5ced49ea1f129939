"""Small sweeps that the tests of the report share."""

import copy
from typing import Any

import pytest

from dse import sweep
from dse.space.space import space_from_mapping
from dse.sweep.result import SweepResult
from tests.conftest import SMALL

QUICK: dict[str, Any] = {"workloads": {"prefill": SMALL["workloads"]["prefill"]}, "timing": "roofline"}
"""What compiles in a second or two."""

HOSTILE = "<script>alert('x')</script> & co"


def swept(**changes: Any) -> SweepResult:
    """Sweep the small space with some keys changed."""
    return sweep(space_from_mapping(copy.deepcopy(SMALL) | changes, "here", "small"))


@pytest.fixture(scope="session")
def result() -> SweepResult:
    """45 designs, three objectives."""
    return swept()


@pytest.fixture(scope="session")
def single() -> SweepResult:
    """One axis, one objective."""
    return swept(axes={"sm_count": [96, 132, 144]}, links={}, objectives=SMALL["objectives"][:1], **QUICK)


@pytest.fixture(scope="session")
def maximised() -> SweepResult:
    """Four objectives, one maximised and named with what HTML must escape; choice and yes-no axes."""
    peak = {"value": "peak_bf16_tflops", "goal": "max", "name": HOSTILE}
    others = [{"value": f"prefill.{metric}", "goal": "min"} for metric in ("ttft_ms", "dram_gb")]
    axes = {"process": ["tsmc_4n", "tsmc_n5"], "async_copy": [False, True], "sm_count": [120, 132, 144]}
    objectives = [*others, {"value": "die_mm2", "goal": "min"}, peak]
    return swept(axes=axes, links={}, objectives=objectives, question=HOSTILE, **QUICK)


@pytest.fixture(scope="session")
def impossible() -> SweepResult:
    """No design can be had, the base GPU included."""
    return swept(axes={"sm_count": [96, 132]}, links={}, constraints=["die_mm2 <= 5"],
                 objectives=SMALL["objectives"][::2], **QUICK)  # fmt: skip
