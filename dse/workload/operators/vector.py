"""Vector kernels: element-wise operators and row kernels as libraries write them, with the counts of each library.

What an operator does stands in ``calibration/vector_ops.csv``, how a library's kernel does it in
``calibration/vector_counts.csv``: CTAs, elements a lane takes at once, instructions, passes and latencies.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import jax
import numpy as np

from dse.base.constants import constant
from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.base.units import WARP_SIZE
from dse.hardware.capability import ANY_NEWER
from dse.hardware.data_types import element_bytes
from dse.workload.implementation import implementation_index
from dse.workload.kernel import Interval, Kernel, Number
from dse.workload.operator import FOREVER, Candidate, Operator

SHUFFLES = int(constant("warp_shuffle_steps"))
"""Steps of a warp's tree reduction."""

WARP_ROW = int(constant("warp_row_elements"))
"""Longest row that one warp takes, where a library's kernel has that variant [element]."""

MOST_CTAS = 2**22
"""CTAs of a grid of shares at most: half of what 32 bits count exactly to with its waves' fractions."""

MANY_ROWS = int(constant("many_rows"))
"""Rows from which a library may prefer smaller CTAs, several of them an SM."""

WIDE_ROWS, WIDE_CAPABILITY = int(constant("wide_load_rows")), constant("wide_load_capability")
"""Rows above which, and compute capability from which, a library has a kernel of 32-byte loads (vLLM, CUDA 12.9)."""


@dataclass(frozen=True)
class VectorOp:
    """What an operator does to an element of its result: arrays read and written, arithmetic, reductions over a row.

    ``reads`` and ``writes`` [1] arrays of the result's size; ``fp32`` and ``sfu`` [instruction/element];
    ``reductions`` [1] over a row; ``out``: type of the result, "" where it is the inputs'; ``number`` of the operator,
    counted from 1 in their table.
    """

    op: str
    reads: float
    writes: float
    fp32: float
    sfu: float
    reductions: float
    out: str
    number: float = 0.0


@dataclass(frozen=True)
class Counts:
    """How a library's kernel does it. ``rows``: 1 where a CTA takes a row, 0 where CTAs take equal shares of all.

    ``vector`` [element] a lane takes at once, ``threads`` [thread/CTA] at most; ``warp_rows``: 1 where a short row is
    one warp's; ``many_threads`` [thread/CTA] at most from MANY_ROWS rows on; ``idle``: 1 where a CTA has a thread for
    every element up to that, though a lane takes ``vector`` of them; ``serial_rows`` [1] rows up to which a CTA takes
    every row in turn; ``rereads``: 1 where later passes may go back to memory, 0 where a row stays on the SM.
    ``instructions`` [instruction/element] in all, the share ``math`` [1] of them on the lanes of one type; ``passes``
    [1] over the inputs; ``waits`` [1] latencies of global memory that a warp waits for in an iteration, ``alu_waits``
    [1] those of dependent instructions, ``serial_waits`` [1] those of memory that pass once in a launch.
    """

    rows: Number
    vector: Number
    threads: Number
    warp_rows: Number
    many_threads: Number
    idle: Number
    serial_rows: Number
    rereads: Number
    instructions: Number
    math: Number
    passes: Number
    waits: Number
    alu_waits: Number
    serial_waits: Number


FITTED_COUNTS = ("instructions", "math", "passes", "waits", "alu_waits", "serial_waits")
"""Counts that cannot be read off a library's source, and are fitted to measured kernels."""


@cache
def vector_ops() -> dict[str, VectorOp]:
    """Return what every vector operator does, by name."""
    numbers = [f.name for f in fields(VectorOp) if f.name not in ("op", "out", "number")]
    return {
        row["op"]: VectorOp(op=row["op"], out=row["out"], number=number, **{n: float(row[n]) for n in numbers})
        for number, row in enumerate(read_table("calibration/vector_ops.csv"), 1)
    }


@cache
def vector_counts() -> dict[tuple[str, str], Counts]:
    """Return how every library's kernels do it, by implementation and operator."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in read_table("calibration/vector_counts.csv"):
        found.setdefault((row["implementation"], row["op"]), {})[row["attribute"]] = float(row["value"])
    return {key: Counts(**values) for key, values in found.items()}


def variants(implementation: str, op: str, rows: float, cols: float, dtype: str) -> dict[str, tuple[float, float]]:
    """Return the names of the kernels that an implementation may run, each with the compute capabilities that run it.

    From the first to below the second. Some have another kernel for 16-bit types, for rows that no warp can take, or
    for many rows where the GPU loads 32 bytes at once.
    """
    known = vector_counts()
    one = f"{op}_block" if cols > WARP_ROW and (implementation, f"{op}_block") in known else op
    if element_bytes(dtype) <= 2 and (implementation, f"{one}_half") in known:
        return {f"{one}_half": (0.0, ANY_NEWER)}
    if one != op:
        return {one: (0.0, ANY_NEWER)}
    if rows > WIDE_ROWS and (implementation, f"{op}_wide") in known:
        return {op: (0.0, WIDE_CAPABILITY), f"{op}_wide": (WIDE_CAPABILITY, ANY_NEWER)}
    return {op: (0.0, ANY_NEWER)}


def variant(implementation: str, op: str, rows: float, cols: float, dtype: str, capability: float) -> str:
    """Return the name of the kernel that an implementation runs on a GPU of a compute capability."""
    found = variants(implementation, op, rows, cols, dtype)
    return next(name for name, (low, high) in found.items() if low <= capability < high)


def has_kernel(implementation: str, op: str) -> bool:
    """Whether an implementation has a kernel for an operator."""
    return (implementation, op) in vector_counts()


def counts_of(implementation: str, op: str) -> Counts:
    """Return the counts of a kernel of an implementation; raises InputError where it has no such kernel."""
    known = vector_counts()
    if (implementation, op) not in known:
        mine = [o for i, o in known if i == implementation]
        raise InputError(f"{implementation} has no kernel of {op!r}; {accepted(op, mine)}")
    return known[implementation, op]


def vector_operator(
    name: str,
    op: str,
    rows: float,
    cols: float,
    dtype: str = "bf16",
    implementation: str = "vllm_vector",
    *,
    out_dtype: str | None = None,
    inputs: float | None = None,
    outputs: float | None = None,
    second: float = 0.0,
    input_distance: float = FOREVER,
    out_distance: float = FOREVER,
    residual_distance: float = 0.0,
    phase: str = "kernel",
    repeats: float = 1.0,
) -> Operator:
    """Return the operator ``op`` over ``rows`` x ``cols`` results as a library's kernel does it, one for each GPU.

    ``inputs`` and ``outputs`` [1]: arrays read and written, where they are not the operator's (sampling writes one
    number a row); ``second`` as in :func:`vector_kernel`.
    ``input_distance`` and ``out_distance`` [B] are the bytes touched since the inputs were written and until the
    results' buffer is written again, ``residual_distance`` those since one of the inputs was, where it is older than
    the others (0: it is not). Raises InputError where the library has no such kernel.
    """
    what = vector_ops()[op]
    reads, writes = what.reads if inputs is None else inputs, what.writes if outputs is None else outputs
    if (reads, writes) != (what.reads, what.writes):
        what = replace(what, reads=reads, writes=writes, number=0.0)  # another operator, which nobody measured
    element = element_bytes(dtype), element_bytes(out_dtype or what.out or dtype)
    counts_of(implementation, op)  # refuses what the library does not have
    distances = (input_distance, out_distance, residual_distance)
    candidates = []
    for kernel_name, (low, high) in variants(implementation, op, rows, cols, dtype).items():
        counts = counts_of(implementation, kernel_name)
        kernel = vector_kernel(
            what, counts, rows, cols, element, distances, implementation_index(implementation), second
        )
        kernel = replace(jax.tree.map(float, kernel), compute_capability=low, capability_end=high)
        candidates.append(Candidate(f"{implementation} {kernel_name}", kernel))
    kind = "norm" if what.reductions else "elementwise"
    return Operator(name, kind, tuple(candidates), repeats, phase, f"{rows:g} x {cols:g} {dtype}")


def vector_kernel(
    what: VectorOp,
    counts: Counts,
    rows: Number,
    cols: Number,
    element: tuple[Number, Number],
    distance: tuple[Number, Number, Number],
    implementation: Number = 0.0,
    second: Number = 0.0,
) -> Kernel:
    """Return the kernel of an operator; every number may be an array, and the fitted counts may be traced.

    ``element`` [B] of an input and of a result; ``distance`` [B] to the last use of inputs, of results, and of
    the one input that is older than the others (0: none is); ``second`` [1] columns that a CTA takes after the others
    (the keys of a rotation, after the queries).
    """
    read, write = what.reads * element[0], what.writes * element[1]
    ctas, warps, repeats, padding = _grid(counts, rows, cols, second)
    elements = rows * cols
    older = np.where(np.asarray(distance[2]) > 0, elements * element[0], 0.0)
    share = elements / (ctas * warps * repeats * WARP_SIZE)  # elements that a lane really has, of those it could
    return Kernel(
        start=Interval(),
        loop=_iteration(what, counts, repeats, counts.vector * padding, share, read, write),
        end=_reductions(what, ctas),
        ctas=ctas,
        warps=warps,
        registers=32.0,
        serial_waits=counts.serial_waits,
        cold_bytes=older,
        cold_distance=np.maximum(distance[2], 1.0),
        warm_bytes=elements * read - older,
        warm_distance=distance[0],
        again_bytes=elements * read * (counts.passes - 1.0) * counts.rereads,
        again_distance=elements / ctas * (read + write),
        write_bytes=elements * write,
        write_distance=distance[1],
        l2_bytes=elements * (read * counts.passes + write),
        implementation=implementation,
        problem=(what.number, rows, cols, element[0], 0.0),
    )


def _iteration(
    what: VectorOp, counts: Counts, repeats: Number, lane: Number, share: Number, read: Number, write: Number
) -> Interval:
    """One of ``repeats`` of a warp: work for the ``lane`` [element] that each of its lanes could have, bytes ``read``
    and ``write`` [B/element] for the ``share`` [element] that it has."""
    vectors = share * (read * counts.passes + write) / 16.0
    loads = WARP_SIZE * share
    return Interval(
        repeats=repeats,
        instructions=lane * counts.instructions,
        fp32=lane * counts.instructions * counts.math,
        int32=vectors,
        sfu=lane * what.sfu,
        shared_bytes=loads * (read * counts.passes + write),
        load_bytes=loads * read * counts.passes,
        store_bytes=loads * write,
        global_waits=counts.waits,
        alu_waits=counts.alu_waits,
        sfu_waits=np.minimum(what.sfu, 1.0),
    )


def _reductions(what: VectorOp, ctas: Number) -> Interval:
    """What a warp does once its row is read: trees over its lanes, and between the warps of its CTA."""
    return Interval(
        repeats=np.where(what.reductions > 0, 1.0, 0.0) + 0.0 * ctas,
        instructions=what.reductions * 4.0 * SHUFFLES,
        fp32=what.reductions * 2.0 * SHUFFLES,
        shared_waits=what.reductions * (SHUFFLES + 2.0),  # shuffles take that path; two exchanges between warps
        alu_waits=what.reductions * 2.0 * SHUFFLES,
    )


def _grid(counts: Counts, rows: Number, cols: Number, second: Number) -> tuple[Any, Any, Any, Any]:
    """CTAs, warps of each, iterations of a warp, and lanes' work relative to what the elements need.

    A CTA takes a row, with as many threads as it has vectors (``second`` columns of it after the others), or a share
    of all elements. Two variants for few elements: a warp takes a row of WARP_ROW or fewer, padded to a power of two,
    four warps a CTA; or every CTA takes all rows in turn. More than MOST_CTAS of shares loop over them.
    """
    by_row = np.asarray(counts.rows) > 0
    short = (np.asarray(counts.warp_rows) > 0) & (np.asarray(cols) <= WARP_ROW)
    few = np.asarray(rows) <= counts.serial_rows
    most = np.where(np.asarray(rows) >= MANY_ROWS, counts.many_threads, counts.threads)
    first = cols - second
    wanted = first / np.where(np.asarray(counts.idle) > 0, 1.0, counts.vector)
    threads = np.where(by_row, np.minimum(np.ceil(wanted / WARP_SIZE) * WARP_SIZE, most), most)
    each = threads * counts.vector
    shares = np.ceil(np.ceil(rows * cols / each) / MOST_CTAS)
    iterations = np.where(by_row, np.ceil(first / each) + np.ceil(second / each), shares)
    needed = np.ceil(first / counts.vector / WARP_SIZE) + np.ceil(second / counts.vector / WARP_SIZE)  # warps of a row
    busy = np.where(by_row, needed * WARP_SIZE / (threads * iterations), 1.0)  # a warp without elements issues nothing
    ctas = np.where(by_row, rows, np.ceil(rows * cols / each / shares))
    power = np.exp2(np.ceil(np.log2(np.maximum(cols, 1.0))))  # of a short row
    rows_a_cta = 4.0 * (WARP_SIZE / np.minimum(power, WARP_SIZE)) * np.where(power <= 128, 2.0, 1.0)
    padded = power * rows_a_cta / (4.0 * WARP_SIZE * counts.vector)
    return (
        np.where(short, np.ceil(rows / rows_a_cta), np.where(few, np.ceil(cols / each), ctas)),
        np.where(short, 4.0, threads / WARP_SIZE),
        np.where(short, 1.0, np.where(few, rows, iterations)),
        np.where(short, padded, busy),
    )
