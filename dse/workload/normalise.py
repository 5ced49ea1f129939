"""Row kernels: RMSNorm, LayerNorm, softmax; one CTA a row, which is kept in registers between its passes.

Rows too long for the registers are read as if they fitted: what a second pass would read again stays in the L1.
"""

from math import ceil

from dse.workload.dtypes import element_bytes
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import FOREVER, Candidate, Operator

REDUCTIONS = {"rmsnorm": 1, "layernorm": 2, "softmax": 2}
"""Reductions over the row: sum of squares; mean and variance; maximum and sum."""

INSTRUCTIONS = {"rmsnorm": 5.0, "layernorm": 8.0, "softmax": 6.0}
"""ALU instructions an element, conversions included."""

ROW_THREADS = (128, 256, 512, 1024)
SHUFFLES = 5
"""Steps of a warp's tree reduction."""


def row_operator(
    name: str,
    kind: str,
    rows: float,
    columns: float,
    dtype: str = "bf16",
    inputs: float = 1.0,
    outputs: float = 1.0,
    input_distance: float = FOREVER,
    out_distance: float = FOREVER,
    phase: str = "kernel",
    repeats: float = 1.0,
) -> Operator:
    """Return a row kernel over ``rows`` x ``columns``; ``kind`` is a key of REDUCTIONS.

    ``inputs`` and ``outputs`` count arrays of that size (a fused residual addition reads two and writes two). Distances
    as in :func:`dse.workload.elementwise.elementwise_operator`. Candidates differ in threads a row.
    """
    candidates = tuple(
        Candidate(
            f"{threads} threads a row",
            _kernel(
                kind, rows, columns, threads, element_bytes(dtype), (inputs, outputs), input_distance, out_distance
            ),
        )
        for threads in ROW_THREADS
        if threads == ROW_THREADS[0] or columns >= 8 * threads
    )
    return Operator(name, "norm", candidates, repeats, phase, f"{rows:g} x {columns:g} {dtype}")


def _kernel(
    kind: str,
    rows: float,
    columns: float,
    threads: int,
    element: float,
    arrays: tuple[float, float],
    input_distance: float,
    out_distance: float,
) -> Kernel:
    inputs, outputs = arrays
    lane = ceil(columns / threads)
    reductions = REDUCTIONS[kind]
    vectors = ceil(lane / 8) * (inputs + outputs)
    alu = lane * INSTRUCTIONS[kind] + reductions * 2 * SHUFFLES
    sfu = lane if kind == "softmax" else 1.0
    size = rows * columns * element
    body = Interval(
        repeats=1,
        instructions=alu + sfu + 2 * vectors + 16.0,
        fp32=alu,
        int32=vectors + 8.0,
        sfu=sfu,
        shared_bytes=32 * lane * element * (inputs + outputs),
        load_bytes=32 * lane * element * inputs,
        store_bytes=32 * lane * element * outputs,
        global_waits=1.0,
        shared_waits=reductions * (SHUFFLES + 2.0),  # shuffles take the shared-memory path; two exchanges between warps
        alu_waits=reductions * 2.0 * SHUFFLES,
        sfu_waits=1.0,
    )
    return Kernel(
        start=Interval(),
        loop=body,
        end=Interval(),
        ctas=rows,
        warps=threads / 32,
        registers=min(255.0, 24.0 + lane * inputs),
        warm_bytes=size * inputs,
        warm_distance=input_distance,
        write_bytes=size * outputs,
        write_distance=out_distance,
        l2_bytes=size * (inputs + outputs),
    )
