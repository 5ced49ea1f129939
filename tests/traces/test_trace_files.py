"""Reading trace directories: what is understood, and that everything else is an InputError with file and line."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dse.base.errors import InputError
from dse.traces.opcodes import AddressSpace, OpClass, Unit, decode_opcode
from dse.traces.trace_files import read_directory
from dse.traces.trace_reader import KernelStream
from tests.traces.traces import kernel_text, write_directory

LOAD = "0010 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7fff00000000 4"
LINES = [
    "0000 ffffffff 1 R1 FFMA 3 R1 R2 R3 0",
    LOAD,
    "0020 0000000f 0 STG.E.64.SYS 2 R4 R2 8 0 0x7fff00000000 7fff00000100 0x7fff00000008 0x20",
    "0030 00000f0f 1 R9 LD.E 1 R4 4 2 0x7f0002000000 4 -4 8 16 4 4 4 4",
    "0040 ffffffff 0 EXIT 0 0",
]


def instructions(folder: Path) -> list[dict]:
    """Read every kernel and return its rows as dictionaries."""
    rows = []
    for kernel in read_directory(folder).kernels:
        stream = KernelStream(kernel)
        for cta in stream:
            for warp in range(kernel.header.warps_per_cta):
                for row in range(*cta.warp(warp).indices(1 << 60)):
                    c = cta.columns
                    at, lanes = int(c.address_at[row]), int(c.mask[row]).bit_count()
                    rows.append(
                        {
                            "cta": cta.number,
                            "warp": warp,
                            "pc": int(c.pc[row]),
                            "opcode": stream.opcodes[c.opcode[row]].text,
                            "space": AddressSpace(c.space[row]),
                            "sources": c.sources[row, : c.source_count[row]].tolist(),
                            "addresses": [] if at < 0 else c.address[at : at + lanes].tolist(),
                        }
                    )
    return rows


def one_warp(lines: list[str], **facts) -> str:
    return kernel_text([[lines]], **facts)


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


@pytest.mark.parametrize("wrap", [gzip.compress, lzma.compress, bytes], ids=["gz", "xz", "plain"])
def test_compressions_read_the_same(tmp_path: Path, wrap) -> None:
    text = one_warp(LINES).encode()
    suffix = {"gz": ".gz", "xz": ".xz"}.get(wrap.__module__[:2], "")
    assert len(instructions(write_directory(tmp_path, wrap(text), suffix=suffix))) == len(LINES)


def test_warps_in_any_order_and_missing_ones(tmp_path: Path) -> None:
    text = one_warp(LINES, threads=96).replace("warp = 0", "warp = 2")
    rows = instructions(write_directory(tmp_path, text))
    assert {row["warp"] for row in rows} == {2}


def test_versions(tmp_path: Path) -> None:
    old = instructions(write_directory(tmp_path / "2", one_warp(["0 0 0 3 " + line for line in LINES], version=2)))
    new = instructions(write_directory(tmp_path / "5", one_warp([LINES[0] + " 17", LINES[4] + " 0"], version=5)))
    assert [row["opcode"] for row in old] == ["FFMA", "LDG.E.SYS", "STG.E.64.SYS", "LD.E", "EXIT"]
    assert len(new) == 2
    with pytest.raises(InputError, match="version 9"):
        read_directory(write_directory(tmp_path / "9", one_warp(LINES, version=9)))


def test_opcodes_of_later_machines() -> None:
    expected = {
        "HMMA.16816.F32": (Unit.TENSOR, 2048),
        "HMMA.1688.F32.TF32": (Unit.TENSOR, 1024),
        "IMMA.16832.S8.S8": (Unit.TENSOR, 4096),
        "DMMA.884": (Unit.TENSOR, 256),
        "HGMMA.64x128x16.F32": (Unit.TENSOR, 64 * 128 * 16 // 4),
        "UTMALDG.2D": (Unit.MEM, 0),
        "LDGSTS.E.BYPASS.128": (Unit.MEM, 0),
        "LDSM.16.M88.4": (Unit.MEM, 0),
    }
    for text, (unit, fma) in expected.items():
        opcode = decode_opcode(text, 90)
        assert opcode is not None and (opcode.unit, opcode.fma) == (unit, fma), text
    assert decode_opcode("LDGSTS.E.BYPASS.128", 90).width == 16
    assert decode_opcode("LDSM.16.M88.4", 70) is None
    assert decode_opcode("KILL", 75).op_class == OpClass.TENSOR


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("FFMA", "FROB.X"), r"line 22: the opcode 'FROB.X' is not known"),
        (("insts = 5", "insts = 6"), "fewer instructions"),
        (("insts = 5", "insts = 4"), "an instruction more"),
        (("warp = 0", "warp = 1"), "a warp of the CTA"),
        (("(1,1,1)", "(2,1,1)"), "after 1 of the grid's 2 CTAs"),
        (("#END_TB", ""), "#END_TB was expected"),
        (("EXIT 0", "EXIT 9"), "at most 1 destination and 4 source"),
        (("-nregs = 16", ""), "no line '-nregs"),
        (("-nregs = 16", "-nregs = 256"), "nregs = 256 is not a thread's; give at most 255"),
        (("-shmem = 0", "-shmem = many"), "shmem = 'many'"),
        ((" 4 1 0x7fff00000000 4", " 4 1 0x7fff00000000"), "addresses do not fit"),
        ((" 4 1 0x7fff00000000 4", " 4 7 0x7fff00000000"), "address mode"),
        ((" 4 1 0x7fff00000000 4", " 0"), "no addresses"),
    ],
)
def test_broken_traces_say_where(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    folder = write_directory(
        tmp_path,
        one_warp(LINES).replace(*change, 1)
        if change[0] != "(1,1,1)"
        else one_warp(LINES).replace("grid dim = (1,1,1)", "grid dim = (2,1,1)"),
    )
    with pytest.raises(InputError, match=words) as caught:
        instructions(folder)
    assert "kernel-1.traceg.gz, line" in str(caught.value)


def test_missing_files_and_lists(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kernelslist\.g: cannot be read"):
        read_directory(tmp_path)
    folder = write_directory(tmp_path, one_warp(LINES))
    (folder / "kernel-1.traceg.gz").unlink()
    with pytest.raises(InputError, match=r"kernelslist\.g, line 2"):
        read_directory(folder)
    (folder / "kernelslist.g").write_text("MemcpyHtoD,zz,4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"kernelslist\.g, line 1"):
        read_directory(folder)


def test_truncated_gzip_says_where(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{pc:04x} ffffffff 1 R1 FFMA 3 R1 R2 R{rng.integers(200)} 0" for pc in range(5000)]
    data = gzip.compress(one_warp(lines).encode())
    with pytest.raises(InputError, match=r"kernel-1\.traceg\.gz, line \d+ and on: cannot be decompressed"):
        instructions(write_directory(tmp_path, data[: len(data) // 2]))


WHOLE = kernel_text([[LINES, LINES], [LINES, LINES[:2]]], threads=64).encode()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_traces_raise_only_input_errors(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        action = data.draw(st.sampled_from(["byte", "cut", "insert", "delete", "token"]))
        if action == "byte" and content:
            content[at] = data.draw(st.integers(0, 255))
        elif action == "cut":
            del content[at:]
        elif action == "insert":
            content[at:at] = data.draw(st.binary(max_size=12))
        elif action == "delete":
            del content[at : at + data.draw(st.integers(1, 40))]
        else:
            words = [
                b"#BEGIN_TB\n",
                b"#END_TB\n",
                b"\nwarp = 0\n",
                b"\ninsts = 3\n",
                b" -1 ",
                b"99999999999999999999",
                b"ffffffff",
            ]
            content[at:at] = data.draw(st.sampled_from(words))
    raw = bytes(content)
    if data.draw(st.booleans()):
        raw = gzip.compress(raw, 1)
        raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        instructions(write_directory(tmp_path, raw))
    except InputError as error:
        assert "kernel-1.traceg.gz" in str(error)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(listing=st.binary(max_size=80))
def test_mutated_lists_raise_only_input_errors(tmp_path: Path, listing: bytes) -> None:
    folder = write_directory(tmp_path, WHOLE)
    (folder / "kernelslist.g").write_bytes(b"kernel" + listing)
    with pytest.raises(InputError, match=r"kernelslist\.g"):
        read_directory(folder)
