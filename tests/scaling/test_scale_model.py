"""The equations of scale-model prediction: by hand, between sizes, across several cliffs, and where they end."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.base.errors import InputError
from dse.scaling.cliffs import Cliff
from dse.scaling.scale_model import (
    METHODS,
    SEES_CLIFFS,
    SPREAD,
    ScaleModels,
    _compounding,
    interval,
    recursion,
    recursion_ratio,
)

MODELS = ScaleModels(8, 100.0, 16, 190.0)
C0 = 2 - 200 / 190
C = 0.95
CLIFF = Cliff(64, 128, 0.5)


@pytest.mark.parametrize(
    ("method", "cliffs", "target", "by_hand"),
    [
        ("recursion", (), 32, 380 * C0),
        ("recursion", (), 64, 760 * C0**3),
        ("recursion", (CLIFF,), 64, 760 * C0**3),
        ("recursion", (CLIFF,), 128, 2 * 760 * C0**3 * C0**3 / 0.5),
        ("recursion", (CLIFF,), 256, 2 * (2 * 760 * C0**6 / 0.5) * C0),  # k starts again
        ("recursion_ratio", (), 64, 760 * C**3),
        ("equations", (), 128, 190 * 8 * C),
        ("equations", (CLIFF,), 128, 190 * 8 / 0.5),
        ("equations", (CLIFF,), 256, 190 * 8 / 0.5 * 2 * C),
        ("equations", (Cliff(16, 32, 0.2), CLIFF), 128, 190 * 2 / 0.8 * 4 / 0.5),
        ("proportional", (CLIFF,), 128, 1600),
        ("linear", (), 128, 190 + 90 / 8 * 112),
        ("power_law", (), 64, 190 * 1.9**2),
        ("logarithmic", (), 64, 190 + 2 * 90),
    ],
)
def test_by_hand(method, cliffs, target, by_hand):
    assert METHODS[method](MODELS, cliffs, target) == pytest.approx(by_hand, rel=1e-12)


def test_scale_models_need_not_be_a_doubling_apart():
    """Steps are those of the models' ratio: from 4 and 16, one step reaches 64 with the correction once."""
    models = ScaleModels(4, 50.0, 16, 180.0)
    assert recursion(models, (), 64) == pytest.approx(180 * 4 * (2 - 4 * 50 / 180))
    assert recursion_ratio(models, (), 64) == pytest.approx(180 * 4 * 0.9)


@pytest.mark.parametrize("method", METHODS)
def test_proportional_scaling_stays_proportional(method):
    models = ScaleModels(10, 50.0, 15, 75.0)
    if method != "logarithmic":
        assert METHODS[method](models, (), 72) == pytest.approx(360.0)
    assert METHODS[method](models, (), 15) == pytest.approx(75.0)


@given(
    small=st.floats(2, 50),
    ratio=st.floats(1.2, 4),
    growth=st.floats(0.7, 1.3),
    steps=st.floats(1, 8),
    f_mem=st.floats(0, 0.9),
)
def test_predictions_are_finite_and_between_sizes_continuous(small, ratio, growth, steps, f_mem):
    models = ScaleModels(small, 10.0, small * ratio, 10.0 * ratio * growth)
    cliff = Cliff(models.n_L * 1.5, models.n_L * 3, f_mem)
    target = models.n_L * steps
    for name in SEES_CLIFFS:
        at, next_to_it = (METHODS[name](models, (cliff,), t) for t in (target, target * (1 + 1e-9)))
        assert 0 < at < inf
        if name != "equations":  # as printed, Eq. (3) has no C where Eq. (2) has: a jump at the cliff's edge
            assert next_to_it == pytest.approx(at, rel=1e-6)
    low, high = interval(models, (cliff,), target)
    assert low <= recursion(models, (cliff,), target) * (1 + 1e-12) <= high * (1 + 2e-12)


@pytest.mark.parametrize("method", SEES_CLIFFS)
def test_what_cannot_be_predicted_is_refused(method):
    with pytest.raises(InputError, match="needs f_mem"):
        METHODS[method](MODELS, (Cliff(64, 128),), 128)
    assert METHODS[method](MODELS, (Cliff(64, 128),), 64) > 0  # before the cliff it is not needed
    with pytest.raises(InputError, match="below the large scale model"):
        METHODS[method](MODELS, (Cliff(8, 16, 0.5),), 32)


def test_a_large_model_that_gains_nothing_has_no_correction():
    with pytest.raises(InputError, match="no faster than half of proportional"):
        recursion(ScaleModels(8, 100.0, 16, 99.0), (), 32)


def test_an_interval_beyond_a_cliff_is_of_the_methods_that_see_it():
    before, after = interval(MODELS, (CLIFF,), CLIFF.before), interval(MODELS, (CLIFF,), 128)
    assert before[0] < recursion(MODELS, (CLIFF,), CLIFF.before) < before[1]
    blind = max(METHODS[name](MODELS, (CLIFF,), 128) for name in SPREAD if name not in SEES_CLIFFS)
    at = recursion(MODELS, (CLIFF,), 128)
    seeing = [METHODS[name](MODELS, (CLIFF,), 128) for name in SEES_CLIFFS]
    seeing.append(_compounding(MODELS, (CLIFF,), 128, 1.0))
    factor = max(max(x / at, at / x) for x in seeing)
    assert after == pytest.approx((at / factor, at * factor))
    assert max(blind / at, at / blind) != pytest.approx(factor)


def test_an_interval_leaves_out_what_falls_to_nothing():
    """From 100 at 64 to 80 at 80, the line crosses zero before 160."""
    falling = ScaleModels(64, 100.0, 80, 80.0)
    assert METHODS["linear"](falling, (), 160) < 0
    low, high = interval(falling, (), 160)
    at = recursion(falling, (), 160)
    assert high / at == pytest.approx(160 / at)
    assert low == pytest.approx(at**2 / 160)


def test_steps_that_give_no_number_are_refused():
    close = ScaleModels(100, 100.0, 101, 101.5)
    with pytest.raises(InputError, match="the ratio of the scale models gives no number at 100000"):
        recursion(close, (), 100000)
    with pytest.raises(InputError, match="the power law of the scale models gives no number at 1e\\+06"):
        METHODS["power_law"](ScaleModels(100, 1.0, 101, 10.0), (), 1e6)
