"""Timing models by name: switches, calibrations and launch latencies as a file may state them."""

from typing import Any

import pytest

from dse.base.errors import InputError
from dse.timing.amali import Amali
from dse.timing.launch import LaunchLatency
from dse.timing.models import TIMING_MODELS, name_of, timing_model


@pytest.mark.parametrize("name", TIMING_MODELS)
def test_a_name_finds_its_model_and_back(name: str) -> None:
    model = timing_model(name, "here")
    assert type(model) is TIMING_MODELS[name]
    assert name_of(model) == name
    assert model.calibration == "uncalibrated"


def test_a_model_of_one_s_own_is_called_by_its_class() -> None:
    class Mine(Amali):
        pass

    assert name_of(Mine()) == "Mine"


def test_a_calibration_comes_with_its_name_and_its_errors() -> None:
    model = timing_model({"model": "amali", "calibration": "h100_sxm"}, "here")
    assert model.calibration == "h100_sxm"
    assert model.error_interval is not None


def test_the_launch_latency_of_a_table_is_that_of_the_model() -> None:
    model: Any = timing_model({"model": "amali", "launch": {"alpha": 3.0}}, "here")
    assert model.launch == LaunchLatency(alpha=3.0)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (3, "3 is not accepted; give one of amali"),
        ({"calibration": "h100_sxm"}, "is not accepted; give one of"),
        ("amalli", "no model is called 'amalli'; did you mean 'amali'"),
        ({"model": "amali", "lunch": {}}, "'lunch' is not a switch of amali; did you mean 'launch'"),
        ({"model": "roofline", "calibration": "h100_sxm"}, "roofline cannot be calibrated"),
        ({"model": "amali", "calibration": 3}, "give the name of a calibration or a path"),
        ({"model": "amali", "calibration": "h100_sxm", "launch": {}}, "launch and calibration are both given"),
        ({"model": "amali", "launch": 3}, "launch = 3 is not accepted; give a table with alpha"),
        ({"model": "amali", "launch": {"alfa": 1}}, "launch.alfa is not a coefficient; did you mean 'alpha'"),
        ({"model": "amali", "launch": {"alpha": True}}, "launch.alpha = True is not accepted; give a number"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_accepted(spec: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"^space\.toml: timing") as told:
        timing_model(spec, "space.toml: timing")
    assert words in str(told.value)


def test_every_switch_takes_true_or_false() -> None:
    from dataclasses import fields

    switches = [f.name for f in fields(Amali) if f.type in (bool, "bool")]
    assert switches
    for name in switches:
        model = timing_model({"model": "amali", name: False}, "here")
        assert getattr(model, name) is False
        with pytest.raises(InputError, match=f"{name} = 1 is not accepted; give true or false"):
            timing_model({"model": "amali", name: 1}, "here")
