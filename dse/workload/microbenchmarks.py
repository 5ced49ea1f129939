"""Microbenchmarks, as a measured table names them: rings of pointers, CTAs that do nothing, loops of one unit."""

from typing import NamedTuple

from dse.base.units import WARP_SIZE
from dse.hardware.data_types import TENSOR_DTYPES, data_types
from dse.workload.kernel import Interval, Kernel

CHASE, GRID = "pointer_chase", "empty_grid"
"""Operators: ``rows`` lines of ``cols`` words that are chased through, ``rows`` CTAs of ``cols`` threads that do
nothing."""

LINE = 32
"""Words of a line [4 B]: each hop reads another line."""

LEAST_HOPS = 2**16
"""Hops of a launch at least, so that a small ring is passed many times and its first pass does not count."""

WARPS = 4
"""Warps of a CTA of a loop [warp/CTA]."""

TILE = 64
"""Side of the products of a loop of tensor cores [element]."""

BLOCK = 1024
"""Words that a CTA of a loop computes on, or reads, at a time [4 B]."""

FMA_STEPS = 8
"""Multiply-adds of each word in an iteration of a loop of FP32 lanes."""


class Loop(NamedTuple):
    """A loop of one unit: the data type, the words [4 B] that it reads over and over (0: none), and the coefficient of
    the board model whose energy it shows."""

    dtype: str
    words: int
    coefficient: str


LOOPS = {
    "loop_tensor": Loop("bf16", 0, "tensor_bf16"),
    "loop_fp32": Loop("fp32", 0, "fp32"),
    "loop_l2": Loop("fp32", 2**21, "l2"),
    "loop_dram": Loop("fp32", 2**28, "dram_path"),
}
"""Operators of ``rows`` CTAs that run ``cols`` iterations each: products in registers and shared memory, multiply-adds
in registers, reads of 8 MiB, which every L2 holds and no L1, and of 1 GiB, which no L2 does."""


def hops(lines: int) -> int:
    """Return the hops of a launch: every line of the ring at least once."""
    return max(lines, LEAST_HOPS)


def loop_kernel(op: str, ctas: float, iterations: float) -> Kernel:
    """Return what a loop of LOOPS demands. Instructions are counted from its source: the loop's own are three."""
    nothing = Interval()
    if op == "loop_tensor":
        fma = TILE**3 / WARPS  # [FMA/warp]
        each = data_types()["bf16"].instructions["hmma_16816"]  # [FMA/warp instruction]
        loop = Interval(repeats=iterations, instructions=fma / each + 3, tensor_fma=fma)
        bf16 = TENSOR_DTYPES.index("bf16")
        tensor = {"uses_tensor": 1.0, "tensor_dtype": bf16, "tensor_instruction_fma": each}
        return Kernel(nothing, loop, nothing, ctas, WARPS, fma=ctas * iterations * TILE**3, **tensor)
    lanes = BLOCK / (WARP_SIZE * WARPS)  # [word/lane]
    if op == "loop_fp32":
        steps = FMA_STEPS * lanes
        loop = Interval(repeats=iterations, instructions=steps + 3, fp32=steps)
        return Kernel(nothing, loop, nothing, ctas, WARPS)
    size = 4.0 * BLOCK  # [B] of an iteration
    loop = Interval(
        repeats=iterations,
        instructions=lanes / 4 + lanes + 6,  # 16 bytes a lane and load, an addition a word, addresses
        fp32=lanes,
        int32=3.0,
        shared_bytes=size / WARPS,
        load_bytes=size / WARPS,
    )
    read = ctas * iterations * size
    distance = 4.0 * LOOPS[op].words
    return Kernel(nothing, loop, nothing, ctas, WARPS, cold_bytes=read, cold_distance=distance, l2_bytes=read)
