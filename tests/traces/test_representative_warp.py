"""Choosing the representative warp: given, from rep_warp_out.bin, or by k-means over units."""

import struct
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.traces.representative_warp import (
    cluster_representative,
    read_representatives,
    representative_warp,
    unit_counts,
)
from dse.traces.trace_files import TraceDirectory, read_directory
from tests.traces.traces import kernel_text, write_directory

FFMA = "0000 ffffffff 1 R1 FFMA 3 R1 R2 R3 0"
MUFU = "0010 ffffffff 1 R1 MUFU.RCP 1 R1 0"
EXIT = "0020 ffffffff 0 EXIT 0 0"
HEAD = struct.pack("<Q22sH4sI", 22, b"serialization::archive", 20, b"\x04\x08\x04\x08", 1)


def archive(*pairs: tuple[int, int]) -> bytes:
    body = b"".join(struct.pack("<ii", *pair) for pair in pairs)
    return HEAD + struct.pack("<BIQIBI", 0, 0, len(pairs), 0, 0, 0) + body


@pytest.fixture
def directory(tmp_path: Path) -> TraceDirectory:
    """Two kernels of 3 CTAs with 2 warps: lengths 1, 2, 2, 3, 20 and 21 on the FP32 unit."""
    ctas = [[[FFMA] * n + [MUFU, EXIT] for n in pair] for pair in ((20, 1), (2, 2), (3, 21))]
    text = kernel_text(ctas, threads=64)
    return read_directory(write_directory(tmp_path, text, text))


def test_given_comes_before_the_file_and_the_file_before_k_means(directory: TraceDirectory) -> None:
    kernel = directory.kernels[1]
    assert representative_warp(directory, kernel) == cluster_representative(kernel)
    (directory.path / "rep_warp_out.bin").write_bytes(archive((1, 4), (2, 5)))
    assert [representative_warp(directory, k) for k in directory.kernels] == [4, 5]
    assert representative_warp(directory, kernel, 0) == 0


def test_k_means_takes_the_warp_nearest_the_larger_cluster(directory: TraceDirectory) -> None:
    counts = unit_counts(directory.kernels[0])
    assert counts[:, 0].tolist() == [20, 1, 2, 2, 3, 21]
    assert (counts[:, 2] == 1).all() and (counts[:, 3] == 1).all()
    assert cluster_representative(directory.kernels[0]) == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"junk", archive((1, 4))[:-1], archive((1, 4)) + b"x", archive((1, 4))[:30], b"\x00" + archive((1, 4))],
)
def test_broken_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rep_warp_out.bin"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"rep_warp_out\.bin"):
        read_representatives(path)


def test_a_kernel_without_an_entry_is_refused(directory: TraceDirectory) -> None:
    (directory.path / "rep_warp_out.bin").write_bytes(archive((1, 4)))
    with pytest.raises(InputError, match="no entry for kernel 2"):
        representative_warp(directory, directory.kernels[1])
