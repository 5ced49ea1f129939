"""Reading trace directories: what is understood, and that everything else is an InputError with file and line."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dse.base.errors import InputError
from dse.traces.trace_files import picked, read_directory
from tests.traces.traces import LINES, instructions, kernel_text, one_warp, write_directory


@pytest.mark.parametrize("wrap", [gzip.compress, lzma.compress, bytes], ids=["gz", "xz", "plain"])
def test_compressions_read_the_same(tmp_path: Path, wrap) -> None:
    text = one_warp(LINES).encode()
    suffix = {"gz": ".gz", "xz": ".xz"}.get(wrap.__module__[:2], "")
    assert len(instructions(write_directory(tmp_path, wrap(text), suffix=suffix))) == len(LINES)


def test_versions(tmp_path: Path) -> None:
    old = instructions(write_directory(tmp_path / "2", one_warp(["0 0 0 3 " + line for line in LINES], version=2)))
    new = instructions(write_directory(tmp_path / "5", one_warp([LINES[0] + " 17", LINES[4] + " 0"], version=5)))
    assert [row["opcode"] for row in old] == ["FFMA", "LDG.E.SYS", "STG.E.64.SYS", "LD.E", "EXIT"]
    assert len(new) == 2
    with pytest.raises(InputError, match="version 9"):
        read_directory(write_directory(tmp_path / "9", one_warp(LINES, version=9)))


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
    with pytest.raises(InputError, match=r"no trace directory: it holds neither"):
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


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ["kernelslist", "kernel-1.trace"],
            "raw traces, as the tracer leaves them: run Accel-Sim's post-traces-processing",
        ),
        (["kernel-1.traceg"], "holds no kernelslist.g; write it, with a line for each kernel .*kernel-1.traceg"),
        (
            ["kernel-1.tracez"],
            "kernel-1.tracez is of Accel-Sim 2.0's compressed format, which is not read; trace as text",
        ),
        (["notes.txt"], "no trace directory: it holds neither kernelslist.g nor a .traceg file"),
    ],
)
def test_a_folder_without_a_list_is_answered_by_what_to_do(tmp_path: Path, files: list[str], words: str) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=words):
        read_directory(tmp_path)
    with pytest.raises(InputError, match=r"is a file; give the folder"):
        read_directory(tmp_path / files[0])
    with pytest.raises(InputError, match=r"no such folder"):
        read_directory(tmp_path / "nothing")


@pytest.mark.parametrize(("suffix", "words"), [(".tracez", "is of Accel-Sim 2.0's compressed"), (".trace", "is raw")])
def test_formats_that_are_not_read_are_named(tmp_path: Path, suffix: str, words: str) -> None:
    (tmp_path / "kernelslist.g").write_text(f"kernel-1{suffix}\n")
    (tmp_path / f"kernel-1{suffix}").write_bytes(one_warp(LINES).encode())
    with pytest.raises(InputError, match=rf"line 1: kernel-1{suffix} {words}"):
        read_directory(tmp_path)


def test_kernels_are_picked_by_number_or_name(tmp_path: Path) -> None:
    traces = read_directory(write_directory(tmp_path, *(one_warp(LINES, name=name) for name in ("a", "b", "a"))))
    assert [kernel.number for kernel in picked(traces, []).kernels] == [1, 2, 3]
    assert [kernel.number for kernel in picked(traces, ["2", "3"]).kernels] == [2, 3]
    assert [kernel.number for kernel in picked(traces, ["a"]).kernels] == [1, 3]
    for wrong in ("4", "0", "c"):
        with pytest.raises(InputError, match=rf"--kernel {wrong}: the trace has kernels 1 to 3"):
            picked(traces, [wrong])
