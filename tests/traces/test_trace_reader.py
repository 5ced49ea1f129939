"""The CTAs of a trace as arrays: addresses, spaces, strides, warps in any order."""

from pathlib import Path

from dse.traces.opcodes import AddressSpace
from tests.traces.traces import LINES, instructions, one_warp, write_directory


def test_address_modes_and_spaces(tmp_path: Path) -> None:
    rows = instructions(write_directory(tmp_path, one_warp(LINES)))
    base = 0x7FFF00000000
    assert rows[1]["addresses"] == [base + 4 * lane for lane in range(32)]
    assert rows[2]["addresses"] == [base, base + 0x100, base + 8, 0x20]
    local = 0x7F0002000000
    assert rows[3]["addresses"] == [local + d for d in (0, 4, 0, 8, 24, 28, 32, 36)]
    assert [row["space"] for row in rows] == [
        AddressSpace.NONE,
        AddressSpace.GLOBAL,
        AddressSpace.GLOBAL,
        AddressSpace.LOCAL,
        AddressSpace.NONE,
    ]
    assert rows[0]["sources"] == [1, 2, 3]


def test_stride_covers_the_first_run_of_lanes_only(tmp_path: Path) -> None:
    rows = instructions(write_directory(tmp_path, one_warp(["0 0000006e 1 R1 LDG.E 1 R2 4 1 0x100 8"])))
    assert rows[0]["addresses"] == [0x100, 0x108, 0x110, 0, 0]


def test_warps_in_any_order_and_missing_ones(tmp_path: Path) -> None:
    text = one_warp(LINES, threads=96).replace("warp = 0", "warp = 2")
    rows = instructions(write_directory(tmp_path, text))
    assert {row["warp"] for row in rows} == {2}
