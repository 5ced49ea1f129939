"""A calibration's parameters: bounds of the fit, units, and what a file may hold."""

import pytest

from dse.base.errors import InputError
from dse.timing.calibration import (
    implementation_calibration,
    load_timing_calibration,
    shipped_calibrations,
    shipped_implementations,
)
from dse.timing.parameters import allowed_parameters, read_parameters
from dse.workload.implementation import KINDS


def changed(tmp_path, old, new):
    """The H100's calibration with one text in place of another."""
    text = shipped_calibrations()["h100_sxm"].read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", shipped_calibrations())
def test_every_shipped_calibration_is_accepted(name):
    assert load_timing_calibration(name).values


@pytest.mark.parametrize("name", shipped_implementations())
def test_every_shipped_implementation_is_accepted_and_within_its_bounds(name):
    values = implementation_calibration(name).values
    for parameter, allowed in allowed_parameters(KINDS[name]).items():
        assert allowed.low * 0.9999 <= values[parameter] <= allowed.high * 1.0001


@pytest.mark.parametrize(
    ("parameter", "value", "ends"),
    [
        ("tensor", "5", "0.5 to 1"),
        ("tensor", "1.001", "0.5 to 1"),
        ("dram", "0", "0.5 to 1.2"),
        ("dram", "9", "0.5 to 1.2"),
        ("dram", "nan", "0.5 to 1.2"),
        ("overlap", "50", "0.01 to 1"),
        ("launch_k", "-1", "100 to 6000"),
        ("launch_k", "'a'", "100 to 6000"),
    ],
)
def test_values_that_no_fit_can_have_are_refused(tmp_path, parameter, value, ends):
    path = changed(tmp_path, f"[parameters.{parameter}]\nvalue = ", f"[parameters.{parameter}]\nvalue = {value} # ")
    with pytest.raises(
        InputError, match=rf"mine.toml: parameters.{parameter}.value is {value}; give a number.* {ends}"
    ):
        load_timing_calibration(path)


def test_an_end_rounded_to_the_digits_of_a_file_is_accepted(tmp_path):
    path = changed(tmp_path, "[parameters.launch_k]\nvalue = ", "[parameters.launch_k]\nvalue = 6000.01 # ")
    assert load_timing_calibration(path).values["launch_k"] == 6000.01


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('unit = "cycle"', 'unit = "ns"', "parameters.launch_k.unit is 'ns'; give the value in 'cycle'"),
        ("data_share", "data_shares", "'data_shares' is no key of parameters.launch_k; did you mean 'data_share'"),
        ("[parameters.dram]", "[parameters.mixed]", "parameters.mixed is not a parameter of matrix"),
        ('implementation = "matrix"', 'implementation = "vllm_vector"', "is not a parameter of vllm_vector"),
        ('model = "amali"', 'model = "mdm"', "model is 'mdm'; give 'amali'"),
        ('name = "h100_sxm"', 'foo = 3\nname = "h100_sxm"', "'foo' is no key of a timing calibration"),
        ('gpus = ["h100_sxm"]', "gpus = [3]", r"gpus is \[3\]; give a list of names"),
        ("aiconfigurator = 0.7", "aiconfigurator = -0.7", "harnesses.aiconfigurator is -0.7.*; give a number from 0"),
        ("aiconfigurator = 0.7", "aiconfigurator = inf # 0.7", "harnesses.aiconfigurator is inf; give a number"),
        ("aiconfigurator = 0.7", "aiconfigurater = 0.7", "is no key of harnesses; did you mean 'aiconfigurator'"),
    ],
)
def test_what_would_be_passed_over_is_refused(tmp_path, old, new, words):
    with pytest.raises(InputError, match=rf"mine.toml: .*{words}"):
        load_timing_calibration(changed(tmp_path, old, new))


def test_a_number_stands_for_its_table(tmp_path):
    rows = {name: allowed.low for name, allowed in allowed_parameters("matrix").items()}
    assert read_parameters(tmp_path, "", rows, "matrix")["tensor"] == 0.5
    with pytest.raises(InputError, match="implementation is 'matrices'; did you mean 'matrix'"):
        read_parameters(tmp_path, "", rows, "matrices")
