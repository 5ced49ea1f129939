"""Guards of a GPU of a user's own: its peaks by hand, and rates that were left behind."""

import pytest

from dse.hardware.own_guards import own_gpu_notes
from dse.hardware.presets import gpu_from_mapping, preset_names, preset_sheet


def notes_of(**changes: float) -> list[str]:
    return own_gpu_notes(gpu_from_mapping({"base": "h100_sxm", **changes}, "mine.toml", "mine"))


def test_peaks_are_those_of_a_data_sheet() -> None:
    text = notes_of(dram_bandwidth_gbs=4000)[0]
    assert "BF16 989," in text and "FP8 1,979," in text and "FP32 67 TFLOPS" in text  # the H100's sheet, dense
    assert "DRAM 4,000 GB/s" in text and "NVLink 450 GB/s a direction" in text


def test_a_rate_that_is_left_behind_is_named() -> None:
    (warning,) = notes_of(tensor_fma_bf16=1024)[1:]
    assert "tensor rate of BF16 differs from h100_sxm's" in warning and "FP16, FP8" in warning


def test_nothing_is_left_behind_where_all_rates_move() -> None:
    rates = {f"tensor_fma_{kind}": 2 * preset_sheet("h100_sxm").numbers()[f"tensor_fma_{kind}"] for kind in KINDS}
    assert len(notes_of(**rates)) == 1


KINDS = ("tf32", "bf16", "fp16", "fp8", "int8")


@pytest.mark.parametrize("name", preset_names()[:3])
def test_a_preset_needs_no_guard(name: str) -> None:
    assert own_gpu_notes(preset_sheet(name)) == []
