"""Descriptions of LLMCompass as GPUs: an A100's is an A100, and what is missing is told with its path."""

import json

import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.hardware.llmcompass import imported_gpu
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import load_sheet, preset_sheet

DESCRIPTION = {
    "name": "Mine",
    "interconnect": {"link": {"bandwidth_per_direction_byte": 25e9}, "link_count_per_device": 12},
    "device": {
        "frequency_Hz": 1410e6,
        "compute_chiplet_count": 1,
        "compute_chiplet": {
            "physical_core_count": 128,
            "core_count": 108,
            "core": {
                "sublane_count": 4,
                "systolic_array": {"array_width": 16, "array_height": 16, "data_type": "fp16", "mac_per_cycle": 1},
                "vector_unit": {"int32_count": 16, "fp32_count": 16, "fp64_count": 8},
                "register_file": {"num_reg_files": 1, "num_registers": 16384},
                "SRAM_KB": 192,
            },
        },
        "memory_protocol": "HBM2e",
        "io": {
            "global_buffer_MB": 40,
            "physical_global_buffer_MB": 48,
            "memory_channel_active_count": 5,
            "pin_count_per_channel": 1024,
            "bandwidth_per_pin_bit": 3.2e9,
        },
        "memory": {"total_capacity_GB": 80},
    },
}


def written(tmp_path, description):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(description))
    return path


def test_an_a100s_description_is_an_a100(tmp_path):
    sheet, _ = imported_gpu(written(tmp_path, DESCRIPTION))
    numbers, a100 = sheet.numbers(), preset_sheet("a100_sxm_80gb").numbers()
    same = (
        "sm_count",
        "fp32_lanes",
        "fp64_lanes",
        "tensor_fma_bf16",
        "registers_per_sm",
        "l1_kib",
        "l2_mib",
        "dram_type",
    )
    assert {name: numbers[name] for name in same} == {name: a100[name] for name in same}
    assert numbers["dram_bandwidth_gbs"] == pytest.approx(2048)
    assert numbers["nvlink_gbs"] == pytest.approx(300)
    assert peak_tflops(numbers, "tensor", "fp16") == pytest.approx(312, rel=0.01)


def test_rates_of_other_types_follow_fp16s(tmp_path):
    wide = json.loads(json.dumps(DESCRIPTION))
    wide["device"]["compute_chiplet"]["core"]["systolic_array"]["array_width"] = 32
    numbers, a100 = imported_gpu(written(tmp_path, wide))[0].numbers(), preset_sheet("a100_sxm_80gb").numbers()
    for name in ("tensor_fma_fp16", "tensor_fma_int8", "tensor_fma_tf32"):
        assert numbers[name] == 2 * a100[name]
    assert numbers["tensor_fma_fp64"] == a100["tensor_fma_fp64"]


def test_the_command_writes_a_file_that_is_read(tmp_path, capsys):
    path, out = written(tmp_path, DESCRIPTION), tmp_path / "gpu.toml"
    assert run_command(["import", str(path), "-o", str(out)]) == 0
    assert "This GPU has dense peaks of" in capsys.readouterr().out
    assert load_sheet(out).numbers() == imported_gpu(path)[0].numbers()
    assert run_command(["import", str(path), "-o", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run_command(["import", str(path), "-o", str(tmp_path / "other.toml"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["gpu"].endswith("other.toml") and "This GPU has dense peaks of" in said["notes"][0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"gpu": 1}, "is no hardware description of LLMCompass"),
        (
            {"device": {"frequency_Hz": "1 GHz"}},
            r"device\.frequency_Hz = '1 GHz' is not accepted",
        ),
        ({"device": {"compute_chiplet": {"core_count": 9, "physical_core_count": 8}}}, "9 is more than .* = 8"),
        ([], "is no hardware description"),
    ],
)
def test_what_is_none_is_refused(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        imported_gpu(written(tmp_path, content))


def test_what_a_description_does_not_say_is_the_bases(tmp_path):
    numbers = imported_gpu(written(tmp_path, {"device": {"memory": {"total_capacity_GB": 40}}}))[0].numbers()
    assert numbers == preset_sheet("a100_sxm_80gb").numbers() | {"dram_gb": 40}
