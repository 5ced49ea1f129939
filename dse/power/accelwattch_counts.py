"""AccelWattch's counters of a launch that is timed here, as its simulator counts them (variant SASS_SIM).

Of a recorded kernel they follow from the opcodes and active lanes of all warps and from the simulated caches; of a
generated one from the counts of its record. Both take the cycles of a timing model.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.base.units import WARP_SIZE
from dse.hardware.gpu import Gpu
from dse.power.counters import AccelWattchActivity, booked
from dse.timing.timing import Timing
from dse.timing.traced.traced_intervals import TraceTraffic, trace_traffic
from dse.traces.opcodes import AddressSpace, OpClass, Opcode
from dse.traces.traced_kernel import SECTOR_BYTES, TracedKernel
from dse.workload.kernel import Kernel

FETCHED = constant("accelwattch_fetched_instructions")
"""Instructions that one access of the L1 instruction cache brings."""

LINE_BYTES = constant("accelwattch_instruction_line")
"""Line of the L1 instruction cache [B]."""

TENSOR_FMA = constant("accelwattch_tensor_fma")
"""FMAs of the tensor instruction that was calibrated, one step of Volta's HMMA.884 [FMA/warp instruction]."""

SHARED_BYTES = constant("accelwattch_shared_bytes")
"""Bytes that shared memory's banks give in a cycle, one access."""

FULL_RATE = constant("accelwattch_full_rate")
"""Thread instructions an SM commits in a cycle at duty 1: 8 warps."""

MOST_DUTY = constant("accelwattch_most_duty")

READ, WRITTEN = constant("accelwattch_operands_read"), constant("accelwattch_operands_written")
"""Register operands of an arithmetic instruction of a generated kernel."""

VECTOR_BYTES = constant("accelwattch_vector_bytes")
"""Bytes a lane that a memory instruction of a generated kernel moves."""


def trace_counts(kernel: TracedKernel, timing: Timing, gpu: Gpu) -> AccelWattchActivity:
    """Return the activity of one launch of a recorded kernel; fields of ``gpu`` are scalars or of shape (designs,).

    Raises InputError for an opcode that AccelWattch does not book.
    """
    done, traffic = kernel.executed, trace_traffic(kernel, gpu)
    counts, lanes = _booked(kernel)
    total, busy = float(done.warps.sum()), jnp.minimum(kernel.ctas / gpu.sm_count, 1.0)
    fetches = total / FETCHED
    misses = jnp.minimum(kernel.code_bytes / LINE_BYTES * busy * gpu.sm_count, fetches)
    counts |= {"TOT_INST": total, "IC_H": fetches - misses, "IC_M": misses}
    counts |= {"REG_RD": float(WARP_SIZE * done.read.sum()), "REG_WR": float(WARP_SIZE * done.written.sum())}
    counts |= _of_memory(traffic, *(float(n) for n in done.sectors))
    counts |= {"SHRD_ACC": sum((_shared(o, n) for o, n in zip(kernel.opcodes, done.lanes, strict=True)), 0.0)}
    return _activity(counts, float(done.lanes.sum()), lanes, timing, gpu, busy)


def kernel_counts(kernel: Kernel, timing: Timing, gpu: Gpu) -> AccelWattchActivity:
    """Return the activity of one launch of a generated kernel (scalars).

    FP32 work is taken for multiply-adds, integer work for additions, special functions for exponentials; loads miss
    the L1 and stores too, since generated kernels stream.
    """
    warps = jnp.asarray(kernel.ctas) * kernel.warps

    def counted(name: str) -> Array:
        return jnp.asarray(kernel.per_warp(name)) * warps

    total, tensor = counted("instructions"), counted("tensor_fma") / TENSOR_FMA
    fp32, int32, sfu, shared = (counted(name) for name in ("fp32", "int32", "sfu", "shared_bytes"))
    loads, stores = counted("load_bytes"), counted("store_bytes")
    memory = jnp.minimum((loads + stores + shared) / (WARP_SIZE * VECTOR_BYTES), total)
    arithmetic = fp32 + int32 + sfu + tensor
    written = safe_div(stores, loads + stores)
    through = jnp.asarray(kernel.l2_bytes)
    traffic = TraceTraffic(
        through * (1 - written), through * written, timing.dram_bytes * (1 - written), timing.dram_bytes * written
    )
    busy = jnp.minimum(jnp.asarray(kernel.ctas) / gpu.sm_count, 1.0)
    threads = {"FP_MUL_ACC": fp32, "INT_ACC": int32, "FP_EXP_ACC": sfu, "TENSOR_ACC": tensor}
    counts: dict[str, Any] = {name: WARP_SIZE * of_warps for name, of_warps in threads.items()}
    counts |= {"TOT_INST": total, "FP_INT": total - memory, "IC_H": total / FETCHED}
    counts |= {"REG_RD": WARP_SIZE * READ * arithmetic, "REG_WR": WARP_SIZE * WRITTEN * arithmetic}
    counts |= _of_memory(traffic, loads / SECTOR_BYTES, stores / SECTOR_BYTES)
    counts |= {"SHRD_ACC": shared / SHARED_BYTES, "DC_RH": 0.0, "DC_RM": loads / SECTOR_BYTES}
    counts |= {"DC_WH": 0.0, "DC_WM": stores / SECTOR_BYTES}
    lanes = jnp.where(arithmetic > 0, float(WARP_SIZE), 0.0)
    return _activity(counts, WARP_SIZE * total, lanes, timing, gpu, busy)


def _booked(kernel: TracedKernel) -> tuple[dict[str, Any], float]:
    """Return the counters of a trace's opcodes, and the mean active lanes on execution units.

    A tensor instruction counts by its multiply-adds in those of the one that was calibrated.
    """
    counts: dict[str, Any] = {"FP_INT": 0.0, "CC_H": 0.0}
    unit_warps = unit_lanes = 0.0
    done = kernel.executed
    for opcode, warps, threads in zip(kernel.opcodes, done.warps.tolist(), done.lanes.tolist(), strict=True):
        counter, memory = booked(opcode.text)
        counts["FP_INT"] += 0.0 if memory else warps
        counts["CC_H"] += warps if opcode.text.split(".")[0] in ("LDC", "ULDC") else 0.0
        if counter:
            work = opcode.fma / TENSOR_FMA if opcode.op_class == OpClass.TENSOR else 1.0
            counts[counter] = counts.get(counter, 0.0) + threads * work
            unit_warps, unit_lanes = unit_warps + warps, unit_lanes + threads
    return counts, unit_lanes / unit_warps if unit_warps else 0.0


def _shared(opcode: Opcode, lanes: float) -> float:
    """Cycles of shared memory's banks that an opcode takes, without conflicts."""
    moves = opcode.space == AddressSpace.SHARED
    return float(lanes) / WARP_SIZE * opcode.shared_bytes / SHARED_BYTES if moves else 0.0


def _of_memory(traffic: TraceTraffic, loads: Any, stores: Any) -> dict[str, Any]:
    """Counters of caches and DRAM; ``loads`` and ``stores`` [sector] that the L1 is asked for.

    Stores pass through the L1 to the L2 (the simulator's Volta). Precharges depend on DRAM rows: none are counted, as
    in the HW variant. A flit each way for every sector of the L2, as there.
    """
    read, write, dram_read, dram_write = (value / SECTOR_BYTES for value in traffic)
    l1_write_misses = jnp.minimum(write, stores)
    write = jnp.maximum(write, stores)
    read_misses, write_misses = jnp.minimum(dram_read, read), jnp.minimum(dram_write, write)
    return {
        "DC_RH": jnp.maximum(loads - read, 0.0),
        "DC_RM": jnp.minimum(read, loads),
        "DC_WH": stores - l1_write_misses,
        "DC_WM": l1_write_misses,
        "L2_RH": read - read_misses,
        "L2_RM": read_misses,
        "L2_WH": write - write_misses,
        "L2_WM": write_misses,
        "NOC_A": 2.0 * (read + write),
        "MEM_RD": dram_read,
        "MEM_WR": dram_write,
    }


def _activity(
    counts: Mapping[str, Any], threads: Any, lanes: Any, timing: Timing, gpu: Gpu, busy: Array
) -> AccelWattchActivity:
    """The activity of counts; ``threads`` [thread instruction] set the duty of the pipelines."""
    cycles = (
        jnp.maximum(timing.nanoseconds, 1.0) * timing.clock_ghz
    )  # no launch is shorter: a batch must not divide by 0
    sms = jnp.asarray(gpu.sm_count, float)
    duty = jnp.minimum(safe_div(threads, cycles * sms * FULL_RATE), MOST_DUTY)
    return AccelWattchActivity.of(
        {**counts, "PIPE_A": duty * cycles * sms},
        cycles=cycles,
        clock_ghz=timing.clock_ghz,
        lanes=lanes,
        sm_count=sms,
        idle_sms=(1.0 - busy) * sms,
    )
