"""GCoM's configuration files, what the model refuses, and what holds for every configuration."""

import json
from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.timing.traced.gcom import gcom_trace
from dse.timing.traced.gcom_config import read_gcom_config
from dse.traces.trace_files import TraceDirectory, read_directory
from tests.traces.traces import kernel_text, write_directory

LINES = [
    "0000 ffffffff 1 R4 S2R 0 0",
    "0010 ffffffff 1 R2 LDG.E.64.SYS 1 R4 8 1 {base:#x} 128",
    "0020 ffffffff 1 R1 FFMA 3 R1 R2 R3 0",
    "0030 ffffffff 1 R6 MUFU.RCP 1 R1 0",
    "0040 ffffffff 0 RED.E.ADD 2 R4 R6 4 1 {base:#x} 4",
    "0050 ffffffff 0 STG.E.SYS 2 R4 R6 4 1 {base:#x} 4",
    "0060 00000000 1 R9 LDG.E.SYS 1 R6 0",
    "0070 ffffffff 0 EXIT 0 0",
]


def trace(folder: Path, ctas: int = 11, warps: int = 3, **facts: Any) -> TraceDirectory:
    def warp(number: int) -> list[str]:
        return [line.format(base=0x7FFF00000000 + 4096 * number) for line in LINES]

    text = kernel_text([[warp(w + c * warps) for w in range(warps)] for c in range(ctas)], threads=32 * warps, **facts)
    return read_directory(write_directory(folder, text, text))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"numSMs": 1},
        {"numSMs": 7, "numSubcorePerSM": 2},
        {"numSubcorePerSM": 3, "subcoreIssueRate": 2, "wrapSchedulePolicy": "lrr"},
        {"nMSHR": 40, "maxNoCBW": 1.5},
        {"l1DnBank": 16, "l1DBankInterleaveByte": 64, "l1DBankHashFunction": 2},
        {"L2WritePolicy": 2, "L2WriteAllocatePolicy": 0, "l1DWriteAllocatePolicy": 0},
        {"numSMs": 2, "maxCTAPerSM": 2},
        {"nSectorPerLine": 1},
        {"numMems": 8, "l2DnPerMem": 4, "L2nSet": 16},
    ],
    ids=str,
)
def test_stacks_add_up(tmp_path: Path, write_config, changes: dict[str, Any]) -> None:
    results = gcom_trace(trace(tmp_path / "t"), read_gcom_config(write_config(**changes)))
    assert len(results) == 2 and results[0].stack == results[1].stack
    s = results[0].stack
    parts = [s.base, s.com_data, s.com_struct, s.mem_data, s.mem_struct, s.idle]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(s.cycles, rel=1e-12)
    assert s.last_interval + s.noc + s.dram <= s.mem_data * (1 + 1e-12)
    assert s.mshr + s.l1_bank == pytest.approx(s.mem_struct, rel=1e-12)


def test_waves_are_serial(tmp_path: Path, write_config) -> None:
    """11 CTAs on 2 SMs of 2: two full waves and a rest of 1, and on the longer SM three full waves."""
    (result, _) = gcom_trace(trace(tmp_path / "t"), read_gcom_config(write_config(numSMs=2, maxCTAPerSM=2)))
    assert [warps for warps, _ in result.waves] == [6, 6, 3]
    full, rest = (sum(stack.cycles for stack in result.waves[i][1]) for i in (1, 2))
    assert result.more.cycles == pytest.approx(3 * full)
    assert result.fewer.cycles == pytest.approx(2 * full + rest)
    assert result.stack.cycles == pytest.approx(3 * full + 1)


def test_more_misses_than_mshrs_queue(tmp_path: Path, write_config) -> None:
    few = gcom_trace(trace(tmp_path / "t"), read_gcom_config(write_config(nMSHR=16)))[0].stack
    many = gcom_trace(trace(tmp_path / "t"), read_gcom_config(write_config(nMSHR=10**9)))[0].stack
    assert few.mshr > 0 == many.mshr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"L2WritePolicy": 1}, "L2WritePolicy = 1 .* not covered"),
        ({"l1DWritePolicy": 0}, "l1DWritePolicy = 0 .* not covered"),
        ({"maxThreadsPerSM": 64}, "does not fit"),
        ({"sharedMemSizeOption": "{1000, 65536}"}, "whole ways"),
        ({"L2nSet": 128}, "no polynomial for 128"),
        ({"l1DLineSize": 64, "sharedMemSizeOption": "{0}"}, "are not covered"),
        ({"l1DnBank": 128}, "l1DnBank = 128"),
    ],
    ids=str,
)
def test_what_the_original_stops_on_is_refused(tmp_path: Path, write_config, changes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        gcom_trace(trace(tmp_path / "t"), read_gcom_config(write_config(**changes)))


def test_other_binaries_are_refused(tmp_path: Path, write_config) -> None:
    with pytest.raises(InputError, match="binary version 80 is not covered by gcom"):
        gcom_trace(trace(tmp_path / "t", binary=80), read_gcom_config(write_config()))


def test_a_representative_without_instructions_is_refused(tmp_path: Path, write_config) -> None:
    text = kernel_text([[[]]])
    with pytest.raises(InputError, match="has no instructions"):
        gcom_trace(read_directory(write_directory(tmp_path / "t", text)), read_gcom_config(write_config()))


def test_command(tmp_path: Path, write_config, capsys: pytest.CaptureFixture[str]) -> None:
    folder = trace(tmp_path / "t").path
    command = ["trace", str(folder), "--gpu", str(write_config(l2DnSet=3)), "--timing", "gcom"]
    assert run_command([*command, "--json"]) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert "GCoM ignores l2DnSet" in captured.err
    causes = ["base", "com_data", "com_struct", "mem_data", "mem_struct", "idle"]
    assert [list(row) for row in rows] == [["kernel", "cycles", *causes, "parts"]] * 2
    assert list(rows[0]["parts"]) == ["noc", "dram", "last_interval", "mshr", "l1_bank"]
    assert sum(rows[0][cause] for cause in causes) == pytest.approx(rows[0]["cycles"])
    assert run_command(command) == 0
    assert "total" in capsys.readouterr().out
    assert run_command([*command, "--representative", "99"]) == 2
    assert "not in the grid" in capsys.readouterr().err
    assert run_command([*command[:-1], "magic"]) == 2
