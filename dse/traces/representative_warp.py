"""The representative warp of a kernel: given, read from ``rep_warp_out.bin``, or chosen by k-means."""

import struct
from pathlib import Path

import numpy as np

from dse.base.errors import InputError
from dse.base.extras import extra
from dse.traces.opcodes import Unit
from dse.traces.trace_files import KernelFile, TraceDirectory
from dse.traces.trace_reader import KernelStream

FILE = "rep_warp_out.bin"
CLUSTERS = 2
_HEAD = struct.pack("<Q22sH4sI", 22, b"serialization::archive", 20, b"\x04\x08\x04\x08", 1)
_COUNT = struct.Struct("<BIQIBI")
_PAIR = struct.Struct("<ii")


def representative_warp(directory: TraceDirectory, kernel: KernelFile, given: int | None = None) -> int:
    """Return a kernel's representative warp: CTA index times warps per CTA plus warp.

    In order: ``given``, the entry of the directory's rep_warp_out.bin, AMALI's k-means; raises InputError.
    """
    if given is not None:
        return given
    path = directory.path / FILE
    if path.exists():
        table = read_representatives(path)
        if kernel.number not in table:
            raise InputError(f"{path}: the file has no entry for kernel {kernel.number}; it has {sorted(table)}")
        return table[kernel.number]
    return cluster_representative(kernel)


def read_representatives(path: Path) -> dict[int, int]:
    """Return kernel number -> warp of a boost binary archive of (number, warp) pairs; raises InputError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not data.startswith(_HEAD) or len(data) < len(_HEAD) + _COUNT.size:
        raise InputError(f"{path}: this is not a boost binary archive of representative warps")
    count = _COUNT.unpack_from(data, len(_HEAD))[2]
    body = data[len(_HEAD) + _COUNT.size :]
    if len(body) != count * _PAIR.size:
        raise InputError(f"{path}: {count} entries were expected, but {len(body)} bytes follow")
    return dict(_PAIR.iter_unpack(body))


def cluster_representative(kernel: KernelFile) -> int:
    """Return the warp nearest to the centre of the larger of two k-means clusters (docs/model/timing_traced.md 8).

    The features are AMALI's: how many instructions a warp sends to each functional unit. Equal warps are clustered
    as one with their number as weight, so the cost does not grow with the grid. Ties take the first warp.
    """
    counts = unit_counts(kernel)
    kinds, first, size = np.unique(counts, axis=0, return_index=True, return_counts=True)
    label = _cluster(kinds.astype(np.float64), size) if len(kinds) > CLUSTERS else np.arange(len(kinds))
    weight = np.bincount(label, size)
    members = label == min(np.flatnonzero(weight == weight.max()), key=lambda c: first[label == c].min())
    centre = np.average(kinds[members], axis=0, weights=size[members])
    distance = ((kinds - centre) ** 2).sum(axis=1)
    nearest = members & (distance <= distance[members].min())
    return int(first[nearest].min())


def _cluster(kinds: np.ndarray, size: np.ndarray) -> np.ndarray:
    with extra("traces", "the choice of a representative warp"):
        from sklearn.cluster import KMeans

    return KMeans(CLUSTERS, n_init=10, random_state=0).fit(kinds, sample_weight=size).labels_


def unit_counts(kernel: KernelFile) -> np.ndarray:
    """Return the instructions of every warp by functional unit: [warps of the grid, units]."""
    header, stream = kernel.header, KernelStream(kernel)
    out = []
    for cta in stream:
        unit = np.array([opcode.unit for opcode in stream.opcodes] or [0])
        counts = np.zeros((header.warps_per_cta, len(Unit)), np.int32)
        for warp in range(header.warps_per_cta):
            counts[warp] = np.bincount(unit[cta.columns.opcode[cta.warp(warp)]], minlength=len(Unit))
        out.append(counts)
    return np.concatenate(out)
