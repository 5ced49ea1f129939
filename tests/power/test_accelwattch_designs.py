"""AccelWattch as a power model: its parts add up, it follows node and voltage, and a space may ask for it."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from dse.hardware.presets import load_sheet
from dse.hardware.process import node_index
from dse.power.accelwattch import AccelWattch, by_component
from dse.power.accelwattch_designs import AccelWattchPower, scaled_beyond
from dse.power.models import power_choice
from dse.space.space import space_from_mapping
from dse.timing.amali import Amali
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.power.launches import EVERYTHING, launch

pytestmark = pytest.mark.usefixtures("in_64_bits")

MODEL = AccelWattchPower.published()
V100 = load_sheet("v100_sxm2_16gb").record()


def test_at_the_reference_it_is_accelwattch_itself() -> None:
    activity = launch(EVERYTHING)
    found, published = (
        MODEL.uncapped(activity, V100),
        by_component(AccelWattch.variant("sass_sim").watts_by_part(activity)),
    )
    for name, watts in published.breakdown().items():
        assert float(getattr(found, name)) == pytest.approx(float(watts)), name


def test_a_smaller_node_draws_less_on_the_chip_and_the_board_the_same() -> None:
    activity = launch(EVERYTHING)
    here, smaller = (
        MODEL.uncapped(activity, replace(V100, process=jnp.asarray(float(node_index(name)))))
        for name in ("tsmc_12ffn", "tsmc_n7")
    )
    assert float(smaller.fp32) < 0.8 * float(here.fp32)
    assert float(smaller.constant) == float(here.constant)


def test_a_higher_clock_draws_more_by_volts_squared() -> None:
    slow, fast = (MODEL.uncapped(launch(EVERYTHING, clock_ghz=clock), V100) for clock in (1.447, 1.6))
    line = MODEL.draw(jnp.asarray(1.6), V100)
    volts = float(line.voltage(1.0) / MODEL.reference_voltage)
    assert float(fast.fp32) == pytest.approx(float(slow.fp32) * 1.6 / 1.447 * volts**2)
    assert float(fast.static) == pytest.approx(float(slow.static) * volts)
    assert float(fast.dram) - 0.55 == pytest.approx((float(slow.dram) - 0.55) * 1.6 / 1.447, rel=1e-3)


def test_a_board_that_waits_draws_its_constant_and_idle_sms() -> None:
    idle = MODEL.idle(jnp.asarray(1.447), V100)
    assert float(idle.watts) == pytest.approx(32.325 + 80 * 0.28279 + 0.5502, abs=0.01)


def test_a_call_stays_within_the_limit_of_the_board() -> None:
    kernel = (
        gemm_operator("g", Gemm(4096, 4096, 4096, a="fp16", b="fp16", compute="fp16", out="fp16"), (7.0, 7.0))
        .candidates[0]
        .kernel.as_arrays()
    )
    small = replace(V100, tdp_w=jnp.asarray(150.0))
    assert float(MODEL(kernel, Amali()(kernel, small), small).watts) <= 150.0
    assert float(MODEL(kernel, Amali()(kernel, V100), V100).watts) > 150.0


def test_nodes_beyond_the_artifacts_are_said() -> None:
    assert scaled_beyond(node_index("tsmc_12ffn")) == ""
    assert "on tsmc_4n its dynamic watts are multiplied by 0." in scaled_beyond(node_index("tsmc_4n"))


def test_a_space_may_ask_for_it() -> None:
    content = {
        "base": "v100_sxm2_16gb",
        "axes": {"sm_count": [40, 80]},
        "power": {"model": "accelwattch"},
        "workloads": {"g": {"use": "llama3_8b:phase=decode,batch=1,context=256,dtype=fp16"}},
        "objectives": [{"value": "g.joules_per_token", "goal": "min"}],
    }
    space = space_from_mapping(content, "s.toml", "s")
    assert space.power.model.calibration == power_choice("accelwattch", "here").model.calibration
    assert space.digest != space_from_mapping(content | {"power": "board"}, "s.toml", "s").digest
