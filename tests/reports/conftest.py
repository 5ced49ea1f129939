"""Small sweeps that the tests of the report share."""

import copy
from typing import Any

import pytest

from dse import sweep
from dse.grid.result import SweepResult
from dse.pareto.search import SearchResult, search
from dse.reports.search.data import SearchReport, search_report
from dse.reports.sweep.design_explanations import DesignExplanations, explain_designs
from dse.space.space import space_from_mapping
from tests.conftest import SMALL
from tests.reports.browser import browser, opened, sized  # noqa: F401 (fixtures)

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
    return swept(
        axes={"sm_count": [96, 132]},
        links={},
        constraints=["die_mm2 <= 5"],
        objectives=SMALL["objectives"][::2],
        **QUICK,
    )


@pytest.fixture(scope="session")
def pair() -> SweepResult:
    """Two objectives, one maximised."""
    peak = {"value": "peak_bf16_tflops", "goal": "max"}
    return swept(objectives=[SMALL["objectives"][0], peak], **QUICK)


@pytest.fixture(scope="session")
def without_baseline() -> SweepResult:
    """The base GPU cannot run the workload: it has neither the data type nor the instructions."""
    axes = {"tensor_fma_fp8": [512, 1024, 2048], "compute_capability": [8.9], "sm_count": [96, 108, 120]}
    workloads = {"prefill": {"use": "gpt2_xl:phase=prefill,batch=1,prompt=512,dtype=fp8"}}
    return swept(
        base="a100_sxm_80gb",
        axes=axes,
        links={},
        workloads=workloads,
        timing="roofline",
        objectives=SMALL["objectives"][::2],
    )


@pytest.fixture(scope="session")
def explanations(pair: SweepResult) -> DesignExplanations:
    """The baseline and the chosen designs of ``pair``."""
    explanations = explain_designs(pair)
    assert explanations is not None
    return explanations


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    """A search of a tenth of 12,544 designs, its files in its folder."""
    axes = {
        "tensor_fma_bf16": [128, 192, 256, 384, 512, 768, 1024],
        "sm_count": {"from": 72, "to": 156, "step": 12},
        "dram_bandwidth_gbs": {"from": 1675, "to": 6700, "count": 14},
        "l2_mib": {"from": 20, "to": 160, "count": 16},
    }
    content = copy.deepcopy(SMALL) | {"axes": axes, "links": {}} | QUICK
    content["objectives"] = SMALL["objectives"][::2]
    space = space_from_mapping(content, "here", "large")
    return search(space, tmp_path_factory.mktemp("search"), evaluations=1200)


@pytest.fixture(scope="session")
def evaluated(searched: SearchResult) -> SearchReport:
    """What the page of a search shows."""
    return search_report(searched)
