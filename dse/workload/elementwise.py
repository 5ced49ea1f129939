"""Kernels that read and write every element once: add, activation, RoPE, quantise, embedding."""

from math import ceil

from dse.workload.dtypes import element_bytes
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import FOREVER, Candidate, Operator

THREADS = 256
LANE_ELEMENTS = 8
"""Elements a lane takes at once: 16 bytes of a 16-bit type."""

UNROLL = (1, 2, 4, 8)


def elementwise_operator(
    name: str,
    elements: float,
    inputs: float = 1.0,
    dtype: str = "bf16",
    out_dtype: str | None = None,
    flops: float = 1.0,
    sfu: float = 0.0,
    input_distance: float = FOREVER,
    out_distance: float = FOREVER,
    phase: str = "kernel",
    repeats: float = 1.0,
) -> Operator:
    """Return the operator that makes ``elements`` results from ``inputs`` values each.

    ``flops`` ALU and ``sfu`` special-function instructions an element. ``input_distance`` and ``out_distance`` [B] are
    the bytes touched since the inputs were written and until the results' buffer is written again. Candidates differ in
    how many vectors a lane loads before it uses the first.
    """
    read = inputs * element_bytes(dtype)
    write = element_bytes(out_dtype or dtype)
    traffic = {
        "warm_bytes": elements * read,
        "warm_distance": input_distance,
        "write_bytes": elements * write,
        "write_distance": out_distance,
        "l2_bytes": elements * (read + write),
    }
    work = (read, write, flops, sfu)
    candidates = tuple(
        Candidate(f"{unroll} vectors a lane", _kernel(elements, unroll, work, traffic))
        for unroll in UNROLL
        if unroll == 1 or elements >= unroll * LANE_ELEMENTS * THREADS
    )
    return Operator(name, "elementwise", candidates, repeats, phase, f"{elements:g} elements {dtype}")


def _kernel(elements: float, unroll: int, work: tuple[float, float, float, float], traffic: dict) -> Kernel:
    read, write, flops, sfu = work
    lane = LANE_ELEMENTS * unroll
    vectors = lane * (read + write) / 16.0
    body = Interval(
        repeats=1,
        instructions=lane * (flops + sfu) + 2 * vectors + 12.0,
        fp32=lane * flops,
        int32=vectors + 8.0,
        sfu=lane * sfu,
        shared_bytes=32 * lane * (read + write),
        load_bytes=32 * lane * read,
        store_bytes=32 * lane * write,
        global_waits=1.0,
        alu_waits=min(flops, 4.0),
        sfu_waits=min(sfu, 1.0),
    )
    return Kernel(
        start=Interval(),
        loop=body,
        end=Interval(),
        ctas=ceil(elements / (THREADS * lane)),
        warps=THREADS / 32,
        registers=24.0 + lane,
        **traffic,
    )
