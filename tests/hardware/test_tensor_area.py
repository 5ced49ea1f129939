"""What is known of the area of tensor cores is a sentence with its interval, and stands where their rate is turned."""

from dataclasses import replace

from dse import load_gpu, run
from dse.hardware.area import DieArea
from dse.hardware.presets import load_sheet, preset_sheet
from dse.hardware.tensor_area import TENSOR_AXES, tensor_area_note, turned_note
from dse.reports.run.notes import run_notes


def test_the_note_holds_the_area_and_both_ends_of_the_evidence():
    value, low, high = (float(end) for end in DieArea.from_table().tensor_range(load_gpu("h100_sxm")))
    text = tensor_area_note(preset_sheet("h100_sxm"))
    assert f"{value:.0f} of the" in text
    assert f"{low:.0f} to {high:.0f} by the evidence" in text
    assert f"four times the rate {3 * value:.0f} ({3 * low:.0f} to {3 * high:.0f})" in text


def test_a_gpu_without_tensor_cores_needs_none():
    assert tensor_area_note(preset_sheet("p4")) == ""


def test_fp64_is_no_axis_of_the_shared_multipliers():
    assert "tensor_fma_fp64" not in TENSOR_AXES
    assert {"tensor_fma_bf16", "tensor_fma_fp8", "tensor_cores_per_sm"} <= set(TENSOR_AXES)


def test_a_run_says_it_of_a_gpu_with_other_tensor_cores_than_its_base(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "h100_sxm"\nname = "mine"\ntensor_cores_per_sm = 8\n')
    mine, h100 = load_sheet(str(file)), preset_sheet("h100_sxm")
    assert "Area of tensor cores" in turned_note(mine, h100)
    assert turned_note(replace(h100, base="h100_sxm"), h100) == ""
    workload = "gpt2_xl:phase=decode,batch=1,context=128"
    assert any("Area of tensor cores" in note for note in run_notes(run(mine, workload)))
    assert not any("Area of tensor cores" in note for note in run_notes(run(h100, workload)))
