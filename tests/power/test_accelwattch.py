"""AccelWattch's coefficients and composition: variants, targets, breakdown, gradients, batches, widths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.power.accelwattch import (
    PARTS,
    VARIANTS,
    AccelWattch,
    TargetScaling,
    by_component,
    node_factor,
    part_counters,
    sheet_columns,
    superseded_idle_correction,
)
from dse.power.counters import COUNTERS
from dse.power.power import COMPONENTS
from dse.power.static import READINGS, StaticPower
from tests.power.launches import EVERYTHING, FP, MEMORY, batch, launch
from tests.programs import quick_jit

MODELS = {
    **{reading: {"reading": reading} for reading in READINGS},
    "half_warp": {"reading": "released", "lane_model": "half_warp"},
    "first_sm": {"reading": "blend", "sm_scaling": "first_sm"},
    "blend by units": {"reading": "blend", "lane_model": "by_units"},
}


pytestmark = pytest.mark.usefixtures("in_64_bits")


def model(name: str = "released", variant: str = "sass_sim") -> AccelWattch:
    return AccelWattch.variant(variant, static=StaticPower.from_table(**MODELS[name]))


def energy(variant: str, counter: str) -> float:
    return float(AccelWattch.variant(variant).energy_pj[COUNTERS.index(counter)])


@pytest.mark.parametrize(
    ("variant", "counter", "picojoules"),
    [
        ("sass_sim", "TOT_INST", 5.8784),
        ("ptx_sim", "DP_DIV_ACC", 999.67),
        ("hw", "TENSOR_ACC", 5.7482),
        ("hybrid", "SHRD_ACC", 738.64),
        ("sass_sim", "MEM_RD", 2009.7),
        ("hw", "REG_RD", 0.0),
        ("hw", "PIPE_A", 250.18),
    ],
)
def test_effective_energies_as_published(variant, counter, picojoules):
    assert energy(variant, counter) == pytest.approx(picojoules, rel=2e-5)


def test_a_dram_byte_costs_what_the_artifact_says():
    sass = AccelWattch.variant("sass_sim")
    row = COUNTERS.index("MEM_RD")
    assert float(sass.energy_pj[row] + sass.controller_pj[row]) / 32 / 8 == pytest.approx(8.06, abs=0.005)  # pJ/bit


def test_pipeline_at_duty_one_on_80_sms():
    busy = launch({"PIPE_A": 80 * 150e3}, idle_sms=0.0)
    assert float(AccelWattch.variant("sass_sim").watts_by_part(busy)["PIPEP"]) == pytest.approx(14.48, abs=0.01)
    assert float(AccelWattch.variant("hw").watts_by_part(busy)["PIPEP"]) == pytest.approx(28.96, abs=0.01)


def test_an_idle_gpu_draws_constant_idle_and_controller_power():
    parts = AccelWattch.variant("hw").watts_by_part(launch({}, lanes=0.0, idle_sms=80.0))
    assert float(parts["IDLE_COREP"]) == pytest.approx(80 * 0.28279166)
    assert float(sum(parts.values())) == pytest.approx(32.32522272 + 80 * 0.28279166 + 0.5502199202)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_part_has_its_component_and_they_add_up(variant):
    watts = AccelWattch.variant(variant)
    parts = watts.watts_by_part(launch(EVERYTHING))
    assert parts.keys() == PARTS.keys() == part_counters().keys() | {"MCP", "IDLE_COREP", "CONSTP", "STATICP"}
    assert set(PARTS.values()) | {"interconnect", "idle_units"} == set(COMPONENTS)
    assert all(float(w) >= 0 for w in parts.values())
    power = watts.power(launch(EVERYTHING))
    assert float(power.watts) == pytest.approx(float(sum(parts.values())), rel=1e-12)
    assert float(sum(sheet_columns(parts).values())) == pytest.approx(float(power.watts), rel=1e-12)
    assert float(power.dram) == pytest.approx(float(parts["DRAMP"] + parts["MCP"]))
    assert watts.calibration == f"accelwattch_{variant}"


def test_dynamic_power_goes_with_the_clock_and_nothing_else_does():
    slow, fast = (model().power(launch(clock_ghz=clock)) for clock in (1.0, 2.0))
    assert float(fast.fp32) == pytest.approx(2 * float(slow.fp32))
    assert float(fast.static + fast.constant + fast.idle_sm) == float(slow.static + slow.constant + slow.idle_sm)


def numerical_gradient(f, x: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Central differences of f, of many points at once, at x in the given entries."""
    steps = np.maximum(np.abs(x[entries]), 1e-3) * 1e-5
    ends = np.repeat(x[None], 2 * len(entries), axis=0)
    ends[np.arange(len(entries)), entries] += steps
    ends[np.arange(len(entries)) + len(entries), entries] -= steps
    high, low = np.split(np.asarray(f(jnp.asarray(ends))), 2)
    return (high - low) / (2 * steps)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "paper" else pytest.mark.slow) for name in MODELS],
)
def test_gradients_equal_finite_differences(name):
    """Every coefficient, and of the launch everything that is not 0 (a hard switch has a kink there)."""
    arrays, rest = eqx.partition(model(name), eqx.is_array)
    numbers, coefficients = ravel_pytree(arrays)
    _, counts = ravel_pytree(launch())

    def watts(both):
        return eqx.combine(coefficients(both[: numbers.size]), rest).power(counts(both[numbers.size :])).watts

    many, slope = quick_jit(jax.vmap(watts)), quick_jit(jax.grad(watts))
    for of in (MEMORY | FP, EVERYTHING):
        x = np.concatenate([numbers, ravel_pytree(launch(of))[0]])
        entries = np.r_[: numbers.size, numbers.size + np.flatnonzero(x[numbers.size :])]
        assert entries.size - numbers.size > 14
        theirs = numerical_gradient(many, x, entries)
        of_each = np.maximum(np.abs(x[entries]), 1e-3)  # compared in watts, or counts would vanish beside lanes
        np.testing.assert_allclose(
            np.asarray(slope(jnp.asarray(x)))[entries] * of_each, theirs * of_each, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("name", MODELS)
def test_finite_with_finite_gradients_where_nothing_runs(name):
    nothing = launch({}, cycles=0.0, lanes=0.0, idle_sms=80.0)
    value, slopes = jax.value_and_grad(lambda a: model(name).power(a).watts)(nothing)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize("name", MODELS)
def test_batch_is_loop_and_jit_is_no_jit(name):
    launches = [launch(), launch(EVERYTHING), launch({}, lanes=0.0), launch(MEMORY, lanes=0.0)]
    together = quick_jit(jax.vmap(model(name).power))(batch(launches)).watts
    np.testing.assert_allclose(together, [model(name).power(one).watts for one in launches], rtol=1e-12)


def test_32_bit_is_close_to_64_bit():
    exact = float(model().power(launch()).watts)
    with jax.enable_x64(False):
        narrow = model().power(launch()).watts
        assert narrow.dtype == jnp.float32
    assert float(narrow) == pytest.approx(exact, rel=1e-6)


def test_target_multiplies_what_it_says():
    plain = model().watts_by_part(launch())
    scaled = eqx.tree_at(lambda m: m.target, model(), TargetScaling(dynamic=2.0, idle=3.0, constant=5.0, static=7.0))
    for part, watts in scaled.watts_by_part(launch()).items():
        factor = {"IDLE_COREP": 3.0, "CONSTP": 5.0, "STATICP": 7.0}.get(part, 2.0)
        assert float(watts) == pytest.approx(factor * float(plain[part])), part


def test_nodes():
    assert (
        float(TargetScaling.at_node("tsmc_16ff").dynamic)
        == pytest.approx(0.82 / 0.77)
        == pytest.approx(1.0649, abs=5e-5)
    )
    assert node_factor("tsmc_16ff") == node_factor("samsung_14") == 0.82
    assert superseded_idle_correction() == pytest.approx(3.8536, abs=5e-5)
    processes = {row["process"] for row in read_table("process/nodes.csv")}
    assert {p for row in read_table("power/accelwattch_nodes.csv") for p in row["processes"].split()} <= processes


def test_by_component_keeps_a_batch():
    power = by_component({"INTP": jnp.ones(3), "DPUP": jnp.full(3, 2.0)})
    assert power.watts.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [(lambda: AccelWattch.variant("hardware"), "hw"), (lambda: node_factor("tsmc_n5"), "tsmc_12ffn")],
)
def test_what_it_does_not_cover_is_refused(wrong, hint):
    with pytest.raises(InputError, match=hint):
        wrong()


@pytest.mark.parametrize("table", ["energies", "static", "constants", "nodes"])
def test_every_number_has_a_unit_and_a_status(table):
    for row in read_table(f"power/accelwattch_{table}.csv"):
        assert row["unit"], row
        assert row["status"] in {"published", "derived", "assumed"}, row
