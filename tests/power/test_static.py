"""Static power of active SMs: categories, lanes, SM counts, idle SMs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.power.static import (
    CATEGORIES,
    MEMORIES,
    UNITS,
    StaticPower,
    category_weights,
    half_warp_lanes,
    idle_sm_power,
    linear_lanes,
    one_hot,
    units_present,
)
from tests.power.launches import launch

ONE = {"int_add": "INT_ACC", "int_mul": "INT_MUL_ACC", "fp": "FP_MUL_ACC", "dp": "DP_ACC", "sfu": "FP_SIN_ACC",
       "tensor": "TENSOR_ACC", "tex": "TEX_ACC", "l1": "DC_RM", "shared": "SHRD_ACC", "l2": "L2_WH"}  # fmt: skip


pytestmark = pytest.mark.usefixtures("in_64_bits")


def category(names: str, mix: str, lanes: float = 32.0) -> str:
    activity = launch({ONE[name]: 1e6 for name in names.split()}, lanes=lanes)
    weights = np.asarray(StaticPower.from_table(mix=mix).weights(activity))
    assert sorted(weights.tolist())[-2:] == [0.0, 1.0]
    return CATEGORIES[int(np.argmax(weights))]


@pytest.mark.parametrize(
    ("names", "released", "paper"),
    [
        ("int_add int_mul fp", "cat2", "cat2"),
        ("int_add int_mul", "cat1", "cat1"),
        ("int_add", "intadd", "intadd"),
        ("int_mul", "cat1", "intmul"),
        ("fp", "cat2", "geomean"),
        ("int_add fp dp", "cat3", "cat3"),
        ("int_mul fp sfu", "cat4", "cat4"),
        ("int_add fp tex l1", "cat5", "cat5"),
        ("int_add fp tensor shared", "cat6", "cat6"),
        ("dp", "geomean", "geomean"),
        ("int_add tensor", "geomean", "geomean"),
        ("int_add fp dp sfu", "geomean", "geomean"),
    ],
)
def test_category_of_a_mix(names, released, paper):
    assert category(names, "released") == released
    assert category(names, "activity") == paper


@pytest.mark.parametrize(
    ("names", "paper"), [("l1 shared l2", "l1"), ("shared l2", "shared"), ("l2", "l2"), ("", "light")]
)
def test_without_execution_units_the_released_code_always_says_l1(names, paper):
    assert category(names, "released", lanes=0.0) == "l1"
    assert category(names, "activity", lanes=0.0) == paper


def test_weights_add_up_for_every_mix_and_choose_one():
    names = UNITS + MEMORIES
    for present in itertools.product((0.0, 1.0), repeat=len(names)):
        weights = category_weights(dict(zip(names, map(jnp.asarray, present), strict=True)))
        assert np.sort(weights).tolist() == [0.0] * (len(CATEGORIES) - 1) + [1.0]


def test_blend_tends_to_the_hard_switch_and_lies_between_before():
    counts = {"INT_ACC": 1e8, "FP_ACC": 1e8, "DP_ACC": 1e5}
    hard = StaticPower.from_table(mix="activity")
    for half_share in (1e-2, 1e-4, 1e-9):
        blend = StaticPower.from_table(mix="blend")
        blend = StaticPower(**{**vars(blend), "half_share": jnp.asarray(half_share)})
        assert float(jnp.sum(blend.weights(launch(counts)))) == pytest.approx(1.0)
    np.testing.assert_allclose(blend.weights(launch(counts)), hard.weights(launch(counts)), atol=1e-5)
    one_instruction = StaticPower.from_table(mix="blend")
    without, little = ({"INT_ACC": 1e8, "FP_ACC": 1e8, "DP_ACC": dp} for dp in (0.0, 32.0))
    jump = abs(float(hard(launch(little)) - hard(launch(without))))
    step = abs(float(one_instruction(launch(little)) - one_instruction(launch(without))))
    assert jump > 1 > 1e4 * step


def test_linear_lanes_reach_the_published_full_warp():
    """P_add of Eq. (4) is (P_32 - P_first) / 31."""
    static = StaticPower.from_table()
    full = launch({"INT_ACC": 1.0, "FP_ACC": 1.0}, lanes=32.0, idle_sms=0.0)
    assert float(static(full)) == pytest.approx(38.620059)
    assert float(linear_lanes(0.0)) == 0 and float(linear_lanes(1.0)) == 0 and float(linear_lanes(32.0)) == 31


def test_half_warp_sawtooth():
    lanes = np.asarray(half_warp_lanes(np.arange(1, 33)))
    assert lanes[15] == lanes[31] == 15  # as printed, P(16) = P(32)
    assert lanes[16] == 7.5  # one full pass and one of a single lane
    assert (np.diff(lanes)[:15] == 1).all() and (np.diff(lanes)[16:] == 0.5).all()


@pytest.mark.parametrize("lane_model", ["linear", "half_warp", "by_units"])
@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_every_lane_model_starts_at_the_first_lane_and_ends_at_the_full_warp(lane_model, units):
    static = StaticPower.from_table("paper", lane_model=lane_model)
    assert float(static.added_lanes(1.0, units)) == 0
    assert float(static.added_lanes(32.0, units)) == pytest.approx(31)


def test_the_sawtooth_fades_with_a_second_and_third_unit():
    static = StaticPower.from_table("paper")
    drops = [float(static.added_lanes(16.0, units) - static.added_lanes(17.0, units)) for units in (1, 2, 3)]
    assert drops[0] > drops[1] > 0 > drops[2] == -1


def test_the_released_code_rounds_lanes_up():
    released, paper = StaticPower.from_table("released"), StaticPower.from_table("released", mix="activity")
    assert float(released.added_lanes(20.1, 3)) == 20
    assert float(paper.added_lanes(20.1, 3)) == pytest.approx(19.1)


def test_readings_of_the_sm_count():
    target = launch(sm_count=28.0, idle_sms=7.0)
    share = {
        s: float(StaticPower.from_table(sm_scaling=s).sm_share(target)) for s in ("released", "per_sm", "first_sm")
    }
    assert share == {"released": 21 / 28, "per_sm": 21 / 80, "first_sm": pytest.approx((46 + 21) / (46 + 80))}
    reference = launch(idle_sms=0.0)
    assert {float(StaticPower.from_table(sm_scaling=s).sm_share(reference)) for s in share} == {1.0}


def test_units_present_counts_integer_once():
    presence = {name: jnp.asarray(1.0) for name in UNITS}
    assert float(units_present(presence)) == 6


def test_idle_power_is_found_again():
    """Synthetic microbenchmarks that draw 0.3 W an idle SM."""
    constant, per_active, active = 32.0, np.array([0.5, 1.0, 1.8]), np.array([20.0, 40.0, 79.0])
    full = constant + 80 * per_active
    partial = constant + active * per_active + (80 - active) * 0.3
    assert float(idle_sm_power(full, partial, active, constant, 80)) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: StaticPower.from_table("code"), "accepted are"),
        (lambda: StaticPower.from_table(mix="hard"), "mix = 'hard'"),
        (lambda: StaticPower.from_table(lanes="linear"), "lanes = 'linear'"),
        (lambda: one_hot("cat7"), "'cat6'"),
    ],
)
def test_unknown_names_are_refused(wrong, hint):
    with pytest.raises(InputError, match=hint):
        wrong()
