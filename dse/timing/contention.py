"""Queueing of requests in MSHRs, network on chip and DRAM (MDM, in GCoM's form; docs/model/timing_amali.md 6)."""

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import few_ceil_div
from dse.timing.memory import MemoryPath

PHI = constant("queue_share")
"""A request waits for half of those it competes with. GCoM doubles it when the MSHRs are full and the network is
saturated; that jump makes a GPU with more SMs slower, and saturation is the roofline floor's here (a departure)."""


def queueing(load_bytes: Array, store_bytes: Array, sms: Array, mshr_bytes: Array, memory: MemoryPath) -> Array:
    """Return S_NoC + S_DRAM + S_MSHR of one interval [cycle].

    ``load_bytes`` and ``store_bytes`` [B] are those of one SM, on ``sms`` SMs: as many as hold CTAs in the wave, not
    all that are active in the kernel (a departure). ``mshr_bytes`` [B] is what full MSHRs fetch.
    Writes reach DRAM through the L2's write-back and queue for the network alone. The last batch of misses queues for
    what it holds, not for full MSHRs (a departure: else fewer misses on each of more SMs, in as many batches, would
    queue longer). Bytes instead of sectors: the sector's size cancels.
    """
    t_n, t_d = memory.l2_byte, memory.dram_byte
    reads = jnp.minimum(load_bytes, mshr_bytes)  # rd^
    m = memory.dram_share
    s_noc = PHI * sms * (reads + store_bytes) * t_n
    s_dram = PHI * sms * reads * m * t_d
    batches = jnp.maximum(few_ceil_div(load_bytes, mshr_bytes) - 1.0, 0.0)  # those that wait for an earlier one
    s_mshr = batches * (memory.l2 + m * memory.dram) + PHI * sms * (load_bytes - reads) * (t_n + m * t_d)
    return s_noc + s_dram + s_mshr
