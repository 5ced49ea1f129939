"""A sweep and a run of what a serving engine runs: its host as a cause, at idle watts; without one, nothing changes."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.run import run
from dse.evaluate.space_program import result_columns
from dse.grid.result import SweepResult
from dse.grid.sweep import sweep
from dse.reports.sweep.answer import caveats
from dse.reports.sweep.page import page_html
from dse.space.space import Space, space_from_mapping
from dse.timing.timing import CAUSES, PHASE_CAUSES
from dse.workload.serving_engine import Host, find_engine
from tests.conftest import SMALL

HOSTS = {"decode": Host(overlapped_us=100.0, waits_us=2000.0), "prefill": Host(overlapped_us=1e5)}
"""One waits always, the other for launches that take longer than its kernels."""


def served(content: dict[str, Any], hosts: dict[str, Host]) -> Space:
    """The space of a mapping, with these hosts of its phases."""
    space = space_from_mapping(content, "here", "small")
    workloads = [
        replace(
            w,
            engine=find_engine("shared") if p.name in hosts else None,
            phases=(replace(p, host=hosts.get(p.name, Host())),),
        )
        for w in space.workloads
        for p in w.phases
    ]
    return replace(space, workloads=tuple(workloads))


QUICK = copy.deepcopy(SMALL) | {"timing": "roofline"}


@pytest.fixture(scope="module")
def alone() -> SweepResult:
    return sweep(served(QUICK, {}))


@pytest.fixture(scope="module")
def found() -> SweepResult:
    return sweep(served(QUICK, HOSTS))


def test_stacks_with_the_host_add_up_to_the_time(found: SweepResult) -> None:
    points = found.points()
    assert np.isfinite(points.select_dtypes("number").to_numpy()).all()
    for workload in ("prefill", "decode"):
        total = points[[f"{workload}.{cause}_ms" for cause in PHASE_CAUSES]].sum(axis=1)
        np.testing.assert_allclose(total, points[f"{workload}.time_ms"], rtol=1e-5)


def test_the_gpu_waits_beside_its_kernels(found: SweepResult, alone: SweepResult) -> None:
    points, before = found.points(), alone.points()
    np.testing.assert_allclose(points["decode.host_ms"], 2.0, rtol=1e-6)
    np.testing.assert_allclose(points["decode.tbt_ms"], before["decode.tbt_ms"] + 2.0, rtol=1e-5)
    assert (before["prefill.ttft_ms"] < 100).all()
    np.testing.assert_allclose(points["prefill.ttft_ms"], 100.0, rtol=1e-5)
    for workload in ("prefill", "decode"):
        watts = (points[f"{workload}.energy_j"] - before[f"{workload}.energy_j"]) / points[f"{workload}.host_ms"] * 1e3
        assert (watts > 80).all() and (watts < 0.6 * before[f"{workload}.power_w"]).all()
        assert (points[f"{workload}.power_w"] < before[f"{workload}.power_w"]).all()
        for cause in CAUSES:
            pd.testing.assert_series_equal(points[f"{workload}.{cause}_ms"], before[f"{workload}.{cause}_ms"])


def test_only_what_waits_has_the_column() -> None:
    space = served(QUICK, {"decode": HOSTS["decode"]})
    names = [name for name in result_columns(space) if name.endswith(".host_ms")]
    assert names == ["decode.host_ms"]
    assert not any(name.endswith(".host_ms") for name in result_columns(served(QUICK, {})))


def test_a_run_is_the_sweep_s_base(found: SweepResult) -> None:
    base = found.baseline.iloc[0]
    for workload, metric in zip(found.space.workloads, ("ttft_ms", "tbt_ms"), strict=True):
        ran, phase = run("h100_sxm", workload, found.space.model), workload.phases[0].name
        for name in (metric, "energy_j", "power_w"):
            assert ran.metrics[name][0] == pytest.approx(base[f"{workload.name}.{name}"], rel=1e-5)
        assert ran.stack(phase)["host"] == pytest.approx(base[f"{workload.name}.host_ms"], rel=1e-5)
        assert sum(ran.stack(phase).values()) == pytest.approx(ran.metrics[metric][0], rel=1e-5)
        assert sum(ran.watts[phase].values()) == pytest.approx(ran.metrics["power_w"][0], rel=1e-5)
        waits = ran.waits[phase] / ran.metrics[metric][0]
        assert ran.kernels["share"].sum() + waits == pytest.approx(1.0, rel=1e-5)


@pytest.mark.slow
def test_an_elasticity_shrinks_by_the_share_that_waits() -> None:
    """What waits for a fixed time depends on nothing: d ln(a + b) = a / (a + b) d ln a."""
    spaces = [served(QUICK, hosts) for hosts in ({}, {"decode": Host(waits_us=2000.0)})]
    numbers = spaces[0].base.numbers()
    slopes, times = [], []
    for space in spaces:
        evaluation = evaluation_of(space.workloads[1], space.model, space.power)
        result = evaluation.on_designs([numbers])
        chosen = np.asarray(result.chosen[0])
        slopes.append(float(evaluation.elasticities(numbers, ["dram_bandwidth_gbs"], chosen).metrics["tbt_ms"][0]))
        times.append(float(result.metrics["tbt_ms"][0]))
    assert times[1] == pytest.approx(times[0] + 2.0, rel=1e-5)
    assert slopes[0] < -0.3
    assert slopes[1] == pytest.approx(slopes[0] * times[0] / times[1], rel=1e-3)


def test_the_page_tells_of_the_host_only_where_one_is(found: SweepResult, alone: SweepResult) -> None:
    assert "<b>host</b>" in page_html(found).replace("strong>", "b>")
    assert PHASE_CAUSES["host"] not in page_html(alone)
    assert "under the engine" not in " ".join(caveats(alone))


def test_digests_differ_by_engine_and_not_without(small: dict[str, Any]) -> None:
    plain = space_from_mapping(small, "here", "small")
    assert served(small, {}).digest == plain.digest
    assert served(small, HOSTS).digest not in (plain.digest, served(small, {"decode": HOSTS["decode"]}).digest)
