"""Axes without effect: said of all designs compared, never of a few of them."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from dse import sweep
from dse.grid.result import SweepResult
from dse.pareto.search import search
from dse.reports.search.data import search_report
from dse.reports.sweep.answer import caveats
from dse.reports.sweep.idle_axes import idle_axes, idle_note
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL
from tests.reports.conftest import QUICK, swept

IDLE = "No objective moves with nvlink_gbs: the model, the workload or a link leaves it out."


def few(limit: bool = False) -> Space:
    """Eight designs: without a power limit the links between GPUs do nothing on one GPU; all else does something."""
    axes = {"sm_count": [96, 132], "dram_bandwidth_gbs": [1675, 3350], "nvlink_gbs": [300, 450]}
    objectives = [{"value": f"prefill.{name}", "goal": "min"} for name in ("ttft_ms", "dram_gb")]
    objectives += [{"value": "peak_bf16_tflops", "goal": "max"}]
    changes = {"axes": axes, "links": {}, "objectives": objectives, "power": {"model": "board", "limit": limit}}
    return space_from_mapping(copy.deepcopy(SMALL) | QUICK | changes, "here", "few")


@pytest.fixture(scope="module")
def whole() -> SweepResult:
    """A search that evaluated all of them."""
    return search(few()).result


def test_a_search_of_every_design_tells_the_idle_axis_alone(whole: SweepResult) -> None:
    """The terminal's result has statistics of the front alone, the page's of pairs alone: neither shows any other."""
    assert whole.n == whole.space.size == 8
    searched = search(few())
    assert idle_note(searched.result) == idle_note(search_report(searched).result) == [IDLE]
    assert [note for note in caveats(searched.result) if "No objective moves" in note] == [IDLE]


def test_a_search_of_some_designs_tells_nothing(whole: SweepResult) -> None:
    assert idle_note(replace(whole, n=whole.n - 1)) == []


def test_an_axis_that_moves_one_corner_moves() -> None:
    """At the power limit the watts of the links cost a design a thousandth of its clock, and no other design any."""
    assert idle_note(search(few(limit=True)).result) == []


def test_a_sweep_tells_the_same(result: SweepResult) -> None:
    assert idle_note(sweep(few())) == [IDLE]
    assert idle_note(result) == []


def test_equal_statistics_do_not_make_an_axis_idle(result: SweepResult) -> None:
    """Median, best and baseline may all stay while designs between them move: the designs themselves decide."""
    still = result.axis_effects.copy()
    still.loc[still["axis"] == "sm_count", ["at_baseline", "median", "best"]] = 1.0
    assert idle_axes(replace(result, axis_effects=still)) == []


def test_designs_without_a_result_prove_nothing() -> None:
    """Their columns hold zeros, which are all the same."""
    objectives = [
        {"value": "prefill.ttft_ms / (die_mm2 - die_mm2)", "goal": "min"},
        {"value": "die_mm2", "goal": "min"},
    ]
    nothing = swept(axes={"dram_bandwidth_gbs": [1675, 3350]}, links={}, objectives=objectives, **QUICK)
    assert nothing.n_feasible == 0
    assert idle_note(nothing) == []


@pytest.mark.slow
def test_of_designs_that_cannot_be_had_nothing_is_stated() -> None:
    some = swept(
        axes={"nvlink_gbs": [300, 450], "sm_count": [96, 132]},
        links={},
        constraints=["sm_count < 100"],
        **QUICK | {"objectives": [{"value": "peak_bf16_tflops", "goal": "max"}]},
    )
    (sentence,) = idle_note(some)
    assert sentence.startswith("No objective of a feasible design moves with nvlink_gbs:")


def test_where_designs_were_not_kept_the_statistics_are_reported_as_such(whole: SweepResult) -> None:
    effects = whole.axis_effects.copy()
    effects["median"] = effects["best"] = np.arange(len(effects), dtype=float)
    effects.loc[effects["axis"] == "nvlink_gbs", ["median", "best"]] = 1.0
    (sentence,) = idle_note(replace(whole, keep="front", axis_effects=effects))
    assert sentence.startswith("Neither the median nor the best of any objective moves with nvlink_gbs:")
    assert idle_note(replace(whole, keep="front")) == []  # the front's best alone says nothing of all designs


@pytest.mark.slow
def test_one_design_with_results_proves_nothing() -> None:
    """Of the values of an axis one alone can be had, or has results: what the others would show is not known."""
    alone = swept(
        axes={"tensor_fma_fp8": [0, 512]},
        links={},
        base="a100_sxm_80gb",
        workloads={"prefill": {"use": "gpt2_xl:phase=prefill,batch=1,prompt=512,dtype=fp8"}},
        timing="roofline",
        objectives=SMALL["objectives"][:1],
    )
    assert alone.n_feasible == 1
    assert idle_note(alone) == []
