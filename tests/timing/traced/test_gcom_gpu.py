"""GPU records as GCoM configurations and back."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.timing.traced.gcom import gcom_trace
from dse.timing.traced.gcom_config import GcomConfig, default_values
from dse.timing.traced.gcom_gpu import config_of_sheet, sheet_of_config
from dse.traces.trace_files import read_directory
from tests.traces.traces import kernel_text, write_directory


def test_the_rtx_2060_becomes_its_configuration() -> None:
    ours, theirs = config_of_sheet(preset_sheet("rtx_2060")), default_values()
    same = [
        "numSMs",
        "numSubcorePerSM",
        "subcoreIssueRate",
        "maxThreadsPerSM",
        "maxCTAPerSM",
        "registerPerSM",
        "intInitIntv",
        "fpInitIntv",
        "dpInitIntv",
        "sfuInitIntv",
        "l1DnSet",
        "l1DAssoc",
        "sharedMemSizeOption",
        "nMSHR",
        "L2nSet",
        "L2Assoc",
        "l2DnPerMem",
        "numMems",
        "maxDRAMBW",
        "operandCollectorQue",
        "fuQue",
    ]
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}


def test_it_times_a_trace(tmp_path: Path) -> None:
    chain = ["0010 ffffffff 1 R1 FFMA 1 R1 0"] * 64
    folder = write_directory(tmp_path, kernel_text([[chain]]))
    (result,) = gcom_trace(read_directory(folder), config_of_sheet(preset_sheet("rtx_2060")), 0)
    # A lone warp: 64 instructions, each the record's 4 cycles after the one before; the last base twice, and one cycle.
    assert result.stack.cycles == pytest.approx(64 * 4 + 1 + 1)


def test_an_l2_that_gcom_cannot_hash_is_refused() -> None:
    with pytest.raises(InputError, match="16, 32 or 64 sets a slice, this GPU 256 in 80 slices"):
        config_of_sheet(preset_sheet("a100_sxm_80gb"))


def test_a_configuration_becomes_a_record() -> None:
    numbers = sheet_of_config(GcomConfig("my.config", default_values())).numbers()
    assert numbers["sm_count"] == 30
    assert numbers["fp32_lanes"] == 64
    assert numbers["alu_latency_cycles"] == 2 + 3 + 2  # L_c + P_c + reg
    assert numbers["l2_mib"] == 3
    assert numbers["l2_slices"] * numbers["l2_slice_bytes_per_cycle"] * 1.365 == pytest.approx(1048.32)
    assert numbers["l2_latency_ns"] == pytest.approx(194 / 1.365)
    with pytest.raises(InputError, match=r"my\.config: sm_count"):
        sheet_of_config(GcomConfig("my.config", default_values() | {"numSMs": 10**6}))
