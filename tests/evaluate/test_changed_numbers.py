"""A few designs under other numbers: what an evaluator says whose space, tables and models hold these numbers."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.changed_numbers import Answers, Numbers, answers, design_columns
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.power.models import PowerChoice
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from tests.timing.traced.test_trace_answer import lines
from tests.traces.traces import kernel_text, write_directory

LINKED = {"links": {"l2_slices": "round(2 * dram_bandwidth_gbs / 83.75)", "l2_clock_mhz": "base.l2_clock_mhz"}}


def asked(space: Space, *settings: Numbers) -> Answers:
    """What the base and every design of a space answer under its own numbers, and under settings."""
    evaluations = [evaluation_of(workload, space.model, space.power) for workload in space.workloads]
    return answers(space, space.at(np.arange(space.size)), [Numbers.of(space), *settings], evaluations, Reasons(space))


def expected(space: Space, **changes: Any) -> np.ndarray:
    """The same objectives by the space's evaluator, (designs, objectives), the base first."""
    space = replace(space, **changes)
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    base = designs.baseline(space)
    every = {name: np.concatenate([base[name], values]) for name, values in columns.items()}
    results = Evaluator(space, Reasons(space))(every)
    return np.stack([results[o.name] for o in space.objectives], axis=1)


def space_of(small: dict[str, Any], **changes: Any) -> Space:
    joules = {"value": "decode.energy_j", "goal": "min"}
    content = small | {"timing": "roofline", "objectives": [*small["objectives"], joules]} | changes
    return space_from_mapping(content, "here", "few")


def test_the_spaces_own_numbers_give_what_its_evaluator_does(small: dict[str, Any]) -> None:
    space = space_of(small)
    found = asked(space)
    np.testing.assert_allclose(found.objectives[0], expected(space), rtol=1e-5)
    assert not found.codes.any()


def test_another_power_model_and_another_attribute(small: dict[str, Any]) -> None:
    space = space_of(small)
    own = Numbers.of(space)
    power = own.power.with_values({"leak": own.power.leak * 3, "dram_path": own.power.dram_path * 2})
    base = dict(own.base) | {"dram_sustained_fraction": 0.5}
    found = asked(space, replace(own, power=power), replace(own, base=base), own)
    np.testing.assert_allclose(
        found.objectives[1], expected(space, power=PowerChoice(power, space.power.limit)), rtol=1e-5
    )
    entry = replace(space.base.entries["dram_sustained_fraction"], number=0.5)
    sheet = replace(space.base, entries=space.base.entries | {"dram_sustained_fraction": entry})
    np.testing.assert_allclose(found.objectives[2], expected(space, base=sheet), rtol=1e-5)
    np.testing.assert_array_equal(found.objectives[3], found.objectives[0])


def test_another_area_changes_dies_and_the_leakage_of_them(small: dict[str, Any]) -> None:
    space = space_of(small)
    own = Numbers.of(space)
    found = asked(space, own.with_area(replace(own.area, l2=own.area.l2 * 2)))
    ratio = found.objectives[1] / found.objectives[0]
    names = [o.name for o in space.objectives]
    assert (ratio[:, names.index("die_mm2")] > 1.05).all()
    assert (ratio[:, names.index("decode.energy_j")] > 1.001).all()


def test_what_is_linked_follows_the_base_or_is_multiplied(small: dict[str, Any]) -> None:
    space = space_of(small, **LINKED)
    own, axes = Numbers.of(space), space.at(np.arange(space.size))
    before = design_columns(space, axes, own)
    more = replace(own, base=dict(own.base) | {"l2_slices": 96.0, "l2_clock_mhz": 1584.0}, linked={"l2_slices": 1.2})
    after = design_columns(space, axes, more)
    assert (before["l2_slices"][0], after["l2_slices"][0]) == (80, 96)
    np.testing.assert_array_equal(after["l2_slices"][1:], np.round(1.2 * 2 * axes["dram_bandwidth_gbs"] / 83.75))
    assert set(after["l2_clock_mhz"]) == {1584.0}


def test_reasons_and_results_of_the_base_are_those_of_the_setting(small: dict[str, Any]) -> None:
    space = space_of(small, constraints=["decode.tbt_ms <= 1.01 * base.decode.tbt_ms"])
    own = Numbers.of(space)
    slow = replace(own, base=dict(own.base) | {"dram_gb": 1.0})
    found = asked(space, slow)
    assert found.codes[0, 0] == 0 and 0 < (found.codes[0] > 0).sum() < space.size
    reasons = Reasons(space)
    assert {reasons.all[code].kind for code in found.codes[1].tolist()} == {"memory"}


def test_a_design_without_results_has_none(small: dict[str, Any]) -> None:
    space = space_of(small, base="a100_sxm_80gb", axes={"sm_count": [96, 108]}, links={})
    own = Numbers.of(space)
    old = replace(own, base=dict(own.base) | {"compute_capability": 5.0})
    found = asked(space, old)
    assert np.isfinite(found.objectives[0]).all()
    assert np.isnan(found.objectives[1]).all() and (found.codes[1] > 0).all()


def test_boards_of_a_trace_are_those_of_its_own_programs(small: dict[str, Any], tmp_path: Path) -> None:
    """Watts follow from a launch's counts alone, whatever timed it."""
    ctas = [[lines(2 * c + w) for w in range(2)] for c in range(40)]
    trace = write_directory(tmp_path / "trace", kernel_text(ctas, threads=64))
    content = {"base": "rtx_2060", "axes": {"tdp_w": [100, 160]}, "links": {}, "timing": "amali"}
    objectives = [{"value": "trace.energy_j", "goal": "min"}, {"value": "die_mm2", "goal": "min"}]
    content |= {"workloads": {"trace": str(trace)}, "objectives": objectives}
    space = space_from_mapping(small | content, "here", "few")
    own = Numbers.of(space)
    power = own.power.with_values({"leak": own.power.leak * 3})
    found = asked(space, replace(own, power=power))
    np.testing.assert_allclose(found.objectives[0], expected(space), rtol=1e-5)
    changed = expected(space, power=PowerChoice(power, space.power.limit))
    np.testing.assert_allclose(found.objectives[1], changed, rtol=1e-5)
    assert (changed[:, 0] > found.objectives[0, :, 0]).all()


def test_no_number_compiles_a_program_again(small: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    space = space_of(small)
    own = Numbers.of(space)
    asked(space, replace(own, power=own.power.with_values({"leak": own.power.leak * 2})))
    area = own.with_area(replace(own.area, l2=own.area.l2 * 2))
    cost = replace(own, cost=replace(own.cost, wafer_usd=own.cost.wafer_usd * 2))
    power = replace(own, power=own.power.with_values({"leak": own.power.leak * 3}))
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        for setting in (area, cost, power):
            asked(space, setting)
        compiled = [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]
        assert compiled == []
        jax.jit(lambda x: x + 1)(1.0)
    assert any("Compiling" in record.getMessage() for record in caplog.records)
