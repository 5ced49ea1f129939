"""What a simulation of a trace's caches tells of a kernel and of its representative warp."""

from typing import NamedTuple

import numpy as np

from dse.traces.opcodes import Opcode
from dse.traces.trace_files import KernelFile

LINEAR, BITWISE_XOR, RESIDUE, FERMI = 0, 1, 2, 3
"""Set hashes, numbered as GCoM's configuration numbers them."""

L1_HIT, L1_MISS, L2_HIT, L2_MISS = range(4)


class CacheGeometry(NamedTuple):
    """What the simulation needs of a GPU: ``l1_ways`` are those left beside the shared-memory carve-out.

    Lines in bytes; ``sectors`` per line (4, or 1 for none); hashes as numbered above.
    0 ``channels``: the L2 is not simulated.
    """

    sms: int
    ctas_per_sm: int
    l1_sets: int
    l1_ways: int
    l1_line: int
    l1_hash: int
    sectors: int
    channels: int
    slices_per_channel: int
    l2_sets: int
    l2_ways: int
    l2_line: int
    l2_hash: int


class Curves(NamedTuple):
    """L2 misses of the representative warp's instructions and of the kernel by cache size (stack_distance.SIZES).

    ``sectors`` [i, sizes + 1] and ``instructions`` [i, sizes + 1]: sectors and warp instructions at instruction i's
    (program counter, index), over all warps, by the smallest size that holds them, the last column by none; ``lines``
    [i]: lines requested there. ``kernel`` [2, sizes + 1]: sectors of all loads and of all stores. ``footprint_bytes``:
    lines touched.
    """

    sectors: np.ndarray
    instructions: np.ndarray
    lines: np.ndarray
    kernel: np.ndarray
    footprint_bytes: int


class Executed(NamedTuple):
    """What all warps of a kernel execute, by opcode (those of ``WarpProfile.opcodes``), [opcodes] each.

    ``warps`` [warp instruction]; ``lanes`` that are active in them [thread operation]; ``read`` and ``written``
    [register operand of a warp]. ``sectors`` [2]: 32-byte sectors that all loads and all stores of global and local
    memory ask the L1 for.
    """

    warps: np.ndarray
    lanes: np.ndarray
    read: np.ndarray
    written: np.ndarray
    sectors: np.ndarray


class WarpProfile(NamedTuple):
    """The representative warp with what the caches did for it, and the kernel's totals.

    Arrays over its instructions i: ``opcode`` indexes ``opcodes``; ``own`` [i, 4] are its accesses that hit and miss
    L1 and L2; ``pooled`` [i, 4] count warp instructions at the same (program counter, index) over all warps without
    and with an L1 miss, without and with an L2 miss (H1, X1, H2, X2); ``access_at`` [i + 1] slices ``access``.
    ``warp_counts`` [CTAs, warps of a CTA]: instructions of every warp; ``executed``: of all warps by opcode.
    """

    kernel: KernelFile
    warp: int
    thread_instructions: int
    warp_counts: np.ndarray
    opcodes: tuple[Opcode, ...]
    pc: np.ndarray
    lanes: np.ndarray
    opcode: np.ndarray
    space: np.ndarray
    destination: np.ndarray
    sources: np.ndarray
    source_count: np.ndarray
    own: np.ndarray
    pooled: np.ndarray
    access_at: np.ndarray
    access: np.ndarray
    executed: Executed
    curves: Curves | None = None
