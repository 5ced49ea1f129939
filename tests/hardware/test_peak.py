"""Peak rates: presets against their data sheets, and a user's peaks against the attributes."""

import pytest

from dse.base.errors import InputError
from dse.hardware.peak import PeakCheck, peak_checks, peak_tflops
from dse.hardware.presets import gpu_from_mapping, load_sheet, preset_names, preset_numbers, preset_sheet

CHECKS = peak_checks(preset_numbers)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: f"{c.preset}-{c.unit}-{c.dtype}")
def test_a_published_dense_peak_agrees_or_its_exception_is_documented(check):
    assert check.agrees != bool(check.exception), f"{check.record:.4g} against {check.sheet:g}"
    assert not check.looks_sparse
    assert check.source


def test_every_preset_is_checked_and_every_tensor_rate_of_the_recent_ones():
    assert {check.preset for check in CHECKS} == set(preset_names())
    for preset in ("a100_sxm_80gb", "h100_sxm", "h200"):
        numbers = preset_sheet(preset).numbers()
        rates = {
            name.removeprefix("tensor_fma_") for name in numbers if name.startswith("tensor_fma_") and numbers[name]
        }
        assert rates == {check.dtype for check in CHECKS if check.preset == preset and check.unit == "tensor"}


@pytest.mark.parametrize(
    ("preset", "unit", "dtype", "tflops"),
    [
        ("a100_sxm_80gb", "tensor", "bf16", 311.9),  # 108 SMs x 4 x 256 x 2 x 1.41 GHz
        ("h100_sxm", "tensor", "fp8", 1978.9),  # 132 x 4 x 1024 x 2 x 1.83
        ("h100_sxm", "tensor", "fp64", 66.9),  # 132 x 4 x 32 x 2 x 1.98
        ("h100_sxm", "vector", "fp32", 66.9),  # 132 x 128 x 2 x 1.98
    ],
)
def test_peaks_by_hand(preset, unit, dtype, tflops):
    assert peak_tflops(preset_sheet(preset).numbers(), unit, dtype) == pytest.approx(tflops, rel=1e-3)


def test_a_sparse_figure_is_seen_as_one():
    assert PeakCheck("h100_sxm", "tensor", "bf16", 1979.0, 989.4, "", "sheet").looks_sparse
    assert not PeakCheck("h100_sxm", "tensor", "bf16", 989.5, 989.4, "", "sheet").looks_sparse


def test_a_file_with_right_peaks_is_accepted(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "h100_sxm"\n[peaks]\nbf16 = 989.5\nfp8 = 1979\nfp32 = 67\nfp64 = 67\n')
    assert load_sheet(path).numbers() == preset_sheet("h100_sxm").numbers()
    assert gpu_from_mapping({"base": "v100_sxm2_16gb", "peaks": {"fp64": 7.8}}, "v.toml", "v").name == "v"


@pytest.mark.parametrize(
    ("peaks", "sentence"),
    [
        ({"bf16": 1979}, "peaks.bf16 = 1979 TFLOPS is twice the 989.4 of the attributes: a figure with 2:4 sparsity"),
        ({"bf16": 1100}, r"peaks.bf16 = 1100 TFLOPS contradicts sm_count x FMA/cycle x 2 x tensor_clock_mhz = 989.4"),
        ({"fp4": 4000}, "peaks.fp4 = 4000 TFLOPS contradicts"),
        ({"bf15": 900}, "peaks.bf15 is not a data type with a peak; did you mean 'bf16'"),
        ({"bf16": "989"}, "peaks.bf16 = '989' is not accepted; give a positive number"),
        ({"bf16": -1}, "peaks.bf16 = -1 is not accepted"),
        (989, "peaks = 989 is not accepted; give a table"),
    ],
)
def test_a_file_whose_peaks_contradict_its_attributes_is_refused(peaks, sentence):
    with pytest.raises(InputError, match=f"mine.toml: {sentence}"):
        gpu_from_mapping({"base": "h100_sxm", "peaks": peaks}, "mine.toml", "mine")


def test_tensor_cores_never_run_above_the_boost_clock():
    numbers = preset_sheet("h100_sxm").numbers()
    slow = numbers | {"boost_clock_mhz": 1000.0}
    assert numbers["tensor_clock_mhz"] > 1000
    assert peak_tflops(slow, "tensor", "bf16") == pytest.approx(
        peak_tflops(numbers, "tensor", "bf16") * 1000 / numbers["tensor_clock_mhz"]
    )
