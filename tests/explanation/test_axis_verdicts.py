"""Verdicts of axes, held to sweeps of the values around each: gains of steps, causes, constraints, the power limit."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dse
from dse.explanation.axis_verdicts import ALWAYS, NEVER, STEP, UNTIL, AxisVerdict, axis_verdicts, scan_values
from dse.grid.sweep import sweep
from dse.hardware.presets import changed, load_sheet
from dse.space.space import Space, space_from_mapping
from dse.timing.timing import CAUSES

CONTENT: dict[str, Any] = {
    "name": "small",
    "base": "h100_sxm",
    "timing": {"model": "amali", "calibration": "h100_sxm"},
    "constraints": ["die_mm2 <= 850"],
    "axes": {
        "tensor_fma_bf16": [128, 512, 2048],
        "sm_count": [72, 132, 180],
        "dram_bandwidth_gbs": [1675, 3350, 6700],
        "l2_mib": [25, 50, 100],
    },
    "links": {"tensor_fma_fp16": "tensor_fma_bf16"},
    "workloads": {
        "prefill": {"use": "llama3_8b:phase=prefill,batch=1,prompt=2048,dtype=bf16"},
        "decode": {"use": "llama3_8b:phase=decode,batch=32,context=2048,dtype=bf16"},
    },
    "objectives": [
        {"value": "prefill.ttft_ms", "goal": "min"},
        {"value": "decode.tokens_per_s", "goal": "max"},
        {"value": "die_mm2", "goal": "min"},
    ],
}


def made(**changes: Any) -> Space:
    return space_from_mapping(CONTENT | changes, "small.toml", "small")


@pytest.fixture(scope="module")
def verdicts() -> dse.AxisVerdicts:
    return axis_verdicts(made())


def at(verdict: AxisVerdict, values: list[float], **changes: Any) -> Any:
    """Every design with these values of a verdict's axis, everything else the base's."""
    space = made(axes={verdict.axis.name: values}, constraints=[], **changes)
    return sweep(space).points().set_index(verdict.axis.name)


def gain(verdict: AxisVerdict, points: Any, low: float, high: float) -> float:
    """What the objective gains from one value to another, as a share of a step of 5 % [1]."""
    sign = 1.0 if verdict.objective.direction == "minimize" else -1.0
    better = sign * math.log(points[verdict.objective.name][low] / points[verdict.objective.name][high])
    return 1 - math.exp(-better * math.log(STEP) / math.log(high / low))


def test_both_phases_have_verdicts(verdicts: dse.AxisVerdicts) -> None:
    found = {(one.axis.name, one.objective.name): one.pays for one in verdicts.verdicts}
    assert found["tensor_fma_bf16", "prefill.ttft_ms"] == UNTIL
    assert found["dram_bandwidth_gbs", "decode.tokens_per_s"] in (UNTIL, ALWAYS)
    assert ("tensor_fma_bf16", "die_mm2") not in found  # more of it never makes a die smaller


def test_the_base_as_it_is_stands_beside_what_is_linked_at_its_value() -> None:
    """A link that gives another number at the base's value: 40 GB/s a MiB are 2,000 of 3,350."""
    workload = CONTENT["workloads"]["decode"]["use"]
    space = made(axes={"l2_mib": [25, 50, 100]}, links={"dram_bandwidth_gbs": "40 * l2_mib"}, constraints=[])
    (one,) = [one for one in axis_verdicts(space).verdicts if one.objective.name == "decode.tokens_per_s"]
    sheet = load_sheet("h100_sxm")
    for gpu, found in ((sheet, one.of_base), (changed(sheet, {"dram_bandwidth_gbs": 2000}, "here"), one.before)):
        told = dse.run(gpu, workload, CONTENT["timing"]).metrics["tokens_per_s"]
        assert found == pytest.approx(told.value, rel=1e-3)


def near(verdict: AxisVerdict) -> list[float]:
    """The values of a scan before, at and after the one that a verdict names."""
    scan = scan_values(verdict.axis, verdict.base)
    place = int(np.abs(scan - verdict.until).argmin())
    return [float(value) for value in scan[max(place - 1, 0) : place + 2]]


@pytest.fixture(scope="module")
def around(verdicts: dse.AxisVerdicts) -> dict[str, Any]:
    """Of each axis every design at and around the values of its verdicts, and far beyond."""
    found: dict[str, list[AxisVerdict]] = {}
    for one in verdicts.verdicts:
        found.setdefault(one.axis.name, []).append(one)
    far = {"tensor_fma_bf16": [700.0, 800.0, 1000.0, 1500.0, 2048.0]}
    return {
        axis: at(every[0], sorted({value for one in every for value in near(one)} | set(far.get(axis, []))))
        for axis, every in found.items()
    }


def test_the_next_step_gains_less_than_one_percent_and_the_last_one_more(
    verdicts: dse.AxisVerdicts, around: dict[str, Any]
) -> None:
    for one in verdicts.verdicts:
        values, points = near(one), around[one.axis.name]
        steps = [gain(one, points, low, high) for low, high in pairwise(values)]
        if one.pays != ALWAYS:
            assert steps[-1] < 0.0101, one
        if one.pays != NEVER:
            assert steps[0] > 0.0099, one


def test_no_further_value_gains_one_percent_a_step(verdicts: dse.AxisVerdicts, around: dict[str, Any]) -> None:
    one = next(v for v in verdicts.verdicts if v.axis.name == "tensor_fma_bf16" and v.objective.name.startswith("pre"))
    points = around["tensor_fma_bf16"]
    further = [value for value in points.index if value > one.until]
    assert len(further) > 4 and all(gain(one, points, one.until, high) < 0.0101 for high in further)


def test_the_cause_leads_the_time_beyond(verdicts: dse.AxisVerdicts, around: dict[str, Any]) -> None:
    for one in verdicts.verdicts:
        if one.cause:
            row, workload = around[one.axis.name].loc[near(one)[-1]], one.objective.name.split(".")[0]
            stack = {cause: row[f"{workload}.{cause}_ms"] for cause in CAUSES}
            assert max(stack, key=lambda cause: stack[cause]) == one.cause


def test_the_power_limit_is_a_cause_where_the_step_would_pay_without_it() -> None:
    power = {"model": "board", "limit": True}
    axes = {"tensor_fma_bf16": [256, 512, 1024]}
    held = axis_verdicts(made(axes=axes, constraints=[], power=power))
    one = next(v for v in held.verdicts if v.objective.name == "prefill.ttft_ms")
    values = near(one)[-2:]
    free = gain(one, at(one, values, power={"model": "board", "limit": False}), *values)
    assert one.power_limit == (free >= 0.01 and one.clock < 1)


def test_the_named_constraint_is_the_first_that_breaks(verdicts: dse.AxisVerdicts) -> None:
    found = {cut.axis.name: cut for cut in verdicts.cuts}
    assert {"tensor_fma_bf16", "sm_count", "l2_mib"} <= found.keys()
    for name, cut in found.items():
        points = sweep(made(axes={name: [cut.last, cut.value]})).points().set_index(name)
        assert points["feasible"][cut.last] and points["reason"][cut.value] == cut.reason


def test_an_infeasible_base_is_said(verdicts: dse.AxisVerdicts) -> None:
    cuts = axis_verdicts(made(constraints=["die_mm2 <= 700"])).cuts
    assert {cut.axis.name for cut in cuts} == set(CONTENT["axes"]) and all(math.isnan(cut.last) for cut in cuts)


def test_the_table_has_a_row_a_verdict(verdicts: dse.AxisVerdicts) -> None:
    table = verdicts.table()
    assert len(table) == len(verdicts.verdicts) and {"axis", "objective", "pays", "until", "cause"} <= set(table)


def test_whole_numbers_are_scanned_one_by_one() -> None:
    axis = next(axis for axis in made(axes={"cluster_size": [1, 8]}, constraints=[]).axes)
    assert scan_values(axis, 8).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
