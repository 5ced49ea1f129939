"""GCoM on a trace: cycles of a kernel by cause, number by number as the original.

Sections are those of docs/model/timing_traced.md.

Lee et al., "GCoM: A Detailed GPU Core Model for Accurate Analytical Modeling of Modern GPUs", ISCA 2022, as its
published program computes it, in 64-bit. Scalars throughout: one kernel on one GPU.
"""

from dataclasses import dataclass, fields
from math import ceil
from typing import Any

from dse.base.errors import InputError
from dse.timing.traced.gcom_config import GcomConfig
from dse.timing.traced.gcom_profile import IntervalProfile, ProfiledInterval, interval_profile, writes_reach_dram
from dse.traces.cache_simulation import simulate
from dse.traces.opcodes import TURING, VOLTA, Unit
from dse.traces.representative_warp import representative_warp
from dse.traces.trace_files import KernelFile, KernelHeader, TraceDirectory
from dse.traces.warp_profile import CacheGeometry, WarpProfile


@dataclass(frozen=True)
class Stack:
    """Cycles by cause: ``cycles`` is the sum of the six after it; ``last_interval`` and what follows are parts.

    noc, dram and last_interval lie within mem_data; mshr and l1_bank within mem_struct. All [cycle].
    """

    cycles: float = 0.0
    base: float = 0.0
    com_data: float = 0.0
    com_struct: float = 0.0
    mem_data: float = 0.0
    mem_struct: float = 0.0
    idle: float = 0.0
    last_interval: float = 0.0
    noc: float = 0.0
    dram: float = 0.0
    mshr: float = 0.0
    l1_bank: float = 0.0

    def __add__(self, other: "Stack") -> "Stack":
        return Stack(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, factor: float) -> "Stack":
        return Stack(*(getattr(self, f.name) * factor for f in fields(self)))


@dataclass(frozen=True)
class Placement:
    """CTAs and warps of a kernel on the SMs  (section 2)."""

    active_sms: int
    warps_per_cta: int
    resident_ctas: int
    more_sms: int
    more_ctas: int
    fewer_ctas: int


@dataclass(frozen=True)
class GcomResult:
    """What GCoM says of one kernel, with its inside: placement, interval profile, and the stacks of the SM classes.

    ``waves`` holds (W, stack of each interval) for every wave: SMs with more CTAs first, full wave then remainder.
    """

    kernel: str
    stack: Stack
    thread_instructions: int
    placement: Placement
    profile: IntervalProfile
    waves: tuple[tuple[int, tuple[Stack, ...]], ...]
    more: Stack
    fewer: Stack

    def document(self) -> dict[str, Any]:
        """Return the kernel's stack as the command line prints it [cycle]."""
        s = self.stack
        causes = ("cycles", "base", "com_data", "com_struct", "mem_data", "mem_struct", "idle")
        parts = ("noc", "dram", "last_interval", "mshr", "l1_bank")
        return {
            "kernel": self.kernel,
            **{name: getattr(s, name) for name in causes},
            "parts": {name: getattr(s, name) for name in parts},
        }


def resident_ctas(header: KernelHeader, config: GcomConfig, where: str) -> int:
    """Return the CTAs that an SM holds at a time: B of section 2; raises InputError where none fits."""
    threads = 32 * header.warps_per_cta
    limits = [config["maxThreadsPerSM"] // threads, config["maxCTAPerSM"]]
    if header.shared_bytes > 0:
        limits.append(config["sharedMemSizeOption"][-1] // header.shared_bytes)
    if header.registers > 0:
        limits.append(config["registerPerSM"] // (threads * 4 * ceil(header.registers / 4)))
    if min(limits) < 1:
        raise InputError(
            f"{where}: a CTA of {threads} threads, {header.registers} registers a thread and {header.shared_bytes} B "
            f"of shared memory does not fit on an SM of {config.path}"
        )
    return min(limits)


def place(header: KernelHeader, config: GcomConfig, where: str) -> Placement:
    """Return how a kernel's CTAs lie on the SMs  (section 2)."""
    active = min(config["numSMs"], header.ctas)  # A
    fewer, more = divmod(header.ctas, active)
    return Placement(active, header.warps_per_cta, resident_ctas(header, config, where), more, fewer + 1, fewer)


def l1_ways(header: KernelHeader, config: GcomConfig, resident: int, where: str) -> int:
    """Return the L1's ways beside the shared-memory carve-out: ways (U - S) / U, which must be whole  (section 3)."""
    unified = config["l1DnSet"] * config["l1DAssoc"] * config["l1DLineSize"]  # U
    needed = header.shared_bytes * resident
    carveouts = [size for size in config["sharedMemSizeOption"] if size >= needed]
    if not carveouts:
        raise InputError(f"{where}: {needed} B of shared memory exceed every carve-out of {config.path}")
    ways, left = divmod(config["l1DAssoc"] * (unified - carveouts[0]), unified)  # S = carveouts[0]
    if left or ways < 1:
        raise InputError(
            f"{config.path}: a carve-out of {carveouts[0]} B does not leave whole ways of an L1 of {unified} B"
        )
    return ways


def cache_geometry(header: KernelHeader, config: GcomConfig, resident: int, where: str) -> CacheGeometry:
    """Return what the cache simulation needs of the GPU for this kernel."""
    c = config
    return CacheGeometry(
        sms=c["numSMs"],
        ctas_per_sm=resident,
        l1_sets=c["l1DnSet"],
        l1_ways=l1_ways(header, config, resident, where),
        l1_line=c["l1DLineSize"],
        l1_hash=c["l1DSetHashFunction"],
        sectors=c["nSectorPerLine"],
        channels=c["numMems"],
        slices_per_channel=c["l2DnPerMem"],
        l2_sets=c["L2nSet"],
        l2_ways=c["L2Assoc"],
        l2_line=c["L2LineSize"],
        l2_hash=c["L2SetHashFunction"],
    )


def split(warps: int, subcores: int) -> tuple[int, int, int, int]:
    """Return (x, y, q, q'): q sub-cores hold x warps, q' hold y = x - 1  (section 6.1)."""
    x = ceil(warps / subcores)
    q = warps % subcores or subcores
    return x, max(x - 1, 0), q, subcores - q


def hiding(k: ProfiledInterval, p: IntervalProfile, others: int, config: GcomConfig) -> tuple[float, float, float]:
    """Return (O, V, Z): others' issue cycles, instructions hidden in the stall, residual stall  (section 6.2)."""
    r = config["subcoreIssueRate"]
    if config["wrapSchedulePolicy"] == "gto":
        O_X = others * p.mean_instructions / r
        V_X = min(k.stall * p.issue_probability, 1.0) * others * p.mean_instructions
    else:  # lrr
        O_X = others * k.instructions / r
        V_X = others * p.issue_probability
    return O_X, V_X, max(k.stall - V_X / r, 0.0)


def data_stack(k: ProfiledInterval, p: IntervalProfile, last: bool, warps: int, config: GcomConfig) -> Stack:
    """Return base, data stall and intra-SM idle of an interval, averaged over the sub-cores  (6.1 to 6.5)."""
    Q, r, n = config["numSubcorePerSM"], config["subcoreIssueRate"], k.instructions
    x, y, q, q_ = split(warps, Q)
    O_x, V_x, Z_x = hiding(k, p, max(x - 1, 0), config)
    O_y, V_y, Z_y = hiding(k, p, max(y - 1, 0), config) if q_ > 0 and y > 0 else (0.0, 0.0, 0.0)
    base = ((n / r + O_x) * q + ((n / r + O_y) * q_ if y > 0 else 0.0)) / Q  # 6.3
    stall = (Z_x * q + Z_y * q_) / Q
    idle = 0.0
    if q_ > 0:  # 6.4
        idle = ((O_x - V_x / r) - (O_y - V_y / r) if y > 0 else n / r + O_x + Z_x) * q_ / Q
    scoreboard = 0.0
    if last:  # 6.5: the original bills base twice
        scoreboard = stall + base
        stall += base
        if q_ > 0:
            idle += (Z_y - Z_x if y > 0 else n / r + O_x) * q_ / Q
    memory = k.from_memory or scoreboard > 0
    return Stack(
        cycles=base + stall + idle,
        base=base,
        com_data=0.0 if memory else stall,
        mem_data=stall if memory else 0.0,
        idle=idle,
        last_interval=scoreboard,
    )


def structural_stack(k: ProfiledInterval, warps: int, config: GcomConfig) -> Stack:
    """Return the structural stalls of an interval inside the SM  (section 6.6)."""
    Q = config["numSubcorePerSM"]
    _, y, q, _ = split(warps, Q)
    a = Q if y > 0 else q
    lo = k.instructions * warps / a
    compute = {unit: d * warps / a for unit, d in k.dispatch.items() if unit != Unit.MEM}
    memory = float(k.dispatch.get(Unit.MEM, 0) * warps)  # not divided: the SM's sub-cores share it
    e = max([lo, memory, *compute.values()]) - lo
    units = sum(d > 0 for d in (memory, *compute.values()))
    T = k.instructions * warps
    u = max(T - float(config["fuQue"] * units + config["operandCollectorQue"] // Q), 0.0)
    e = e * u / T + max(e * (T - u) / T - k.stall, 0.0)
    a_m, a_c = max(memory - lo, 0.0), max(sum(compute.values()) - lo, 0.0)
    z = (a_m + a_c) or 1.0
    return Stack(cycles=e, com_struct=e * a_c / z, mem_struct=e * a_m / z, l1_bank=e * a_m / z)


def contention_stack(k: ProfiledInterval, warps: int, active_sms: int, config: GcomConfig) -> Stack:
    """Return the queueing of an interval in MSHRs, network and DRAM  (section 6.7, after MDM)."""
    c, A, M = config, active_sms, config["nMSHR"]
    sector = c["l1DLineSize"] / c["nSectorPerLine"]
    t_N, t_D = c["coreFreq"] * sector / c["maxNoCBW"], c["coreFreq"] * sector / c["maxDRAMBW"]
    m = _rate(k.l2_read_misses, k.l2_read_hits)
    m_w = _rate(k.l2_write_misses, k.l2_write_hits)
    rd, wr = k.l1_read_misses * warps, k.l1_write_misses * warps
    divergent, rd_ = rd > M, min(rd, M)
    D = rd_ * m + (wr * m_w if writes_reach_dram(c) else 0.0)
    saturated = t_N * (rd_ + wr) * A > c["L2Latency"] + c["dramLatency"]
    phi = 1.0 if divergent and saturated else 0.5
    noc, dram = phi * A * (rd_ + wr) * t_N, phi * A * D * t_D  # S_NoC, S_DRAM
    mshr = 0.0  # S_MSHR
    if divergent:
        batch = c["L2Latency"] + m * c["dramLatency"] + phi * A * rd_ * (t_N + m * t_D)
        mshr = batch * (ceil(rd / M) - 1)
    return Stack(cycles=noc + dram + mshr, mem_data=noc + dram, mem_struct=mshr, noc=noc, dram=dram, mshr=mshr)


def _rate(misses: int, hits: int) -> float:
    return misses / (misses + hits) if misses + hits else 0.0


def wave(p: IntervalProfile, warps: int, active_sms: int, config: GcomConfig) -> tuple[Stack, ...]:
    """Return the stack of every interval with W resident warps  (section 6.8)."""
    last = len(p.intervals) - 1
    return tuple(
        data_stack(k, p, i == last, warps, config)
        + structural_stack(k, warps, config)
        + contention_stack(k, warps, active_sms, config)
        for i, k in enumerate(p.intervals)
    )


def sm_waves(ctas: int, at: Placement) -> list[tuple[int, int]]:
    """Return (times, W) of the waves of an SM with so many CTAs: F full ones, then the rest  (section 2)."""
    resident = min(at.resident_ctas, ctas)
    full, rest = divmod(ctas, resident)
    return [(full, resident * at.warps_per_cta)] + ([(1, rest * at.warps_per_cta)] if rest else [])


def gcom(profile: WarpProfile, config: GcomConfig) -> GcomResult:
    """Return GCoM's cycles of a kernel whose representative warp went through the caches  (sections 4 to 7)."""
    header, where = profile.kernel.header, str(profile.kernel.path)
    at, p = place(header, config, where), interval_profile(profile, config)
    waves, sms = [], []
    for count, ctas in ((at.more_sms, at.more_ctas), (at.active_sms - at.more_sms, at.fewer_ctas)):
        total = Stack()
        for times, warps in sm_waves(ctas, at) if count else []:
            waves.append((warps, wave(p, warps, at.active_sms, config)))
            total = total + sum(waves[-1][1], Stack()) * times
        sms.append(total)
    stack = _kernel_stack(sms[0], sms[1], at)
    return GcomResult(header.name, stack, profile.thread_instructions, at, p, tuple(waves), sms[0], sms[1])


def _kernel_stack(more: Stack, fewer: Stack, at: Placement) -> Stack:
    """Average the SMs; idle fills them up to the longest, and a cycle is added to base  (section 7)."""
    A, fewer_sms = at.active_sms, at.active_sms - at.more_sms
    longest = max(more.cycles, fewer.cycles)  # T
    mean = more * (at.more_sms / A) + fewer * (fewer_sms / A)
    idle = (longest - more.cycles) * at.more_sms / A + (longest - fewer.cycles) * fewer_sms / A
    tail = Stack(cycles=longest + 1 - mean.cycles, base=1.0, idle=idle)
    return mean + tail


def gcom_kernel(kernel: KernelFile, config: GcomConfig, representative: int) -> GcomResult:
    """Read, simulate and time one kernel of a trace with the given representative warp."""
    header, where = kernel.header, str(kernel.path)
    if header.binary not in (VOLTA, TURING):
        raise InputError(f"{where}: binary version {header.binary} is not covered by gcom; {VOLTA} and {TURING} are")
    writes_reach_dram(config)
    geometry = cache_geometry(header, config, resident_ctas(header, config, where), where)
    return gcom(simulate(kernel, geometry, representative), config)


def gcom_trace(directory: TraceDirectory, config: GcomConfig, representative: int | None = None) -> list[GcomResult]:
    """Return GCoM's result for every kernel of a trace directory, in its order.

    The representative warp is the given one, or rep_warp_out.bin's, or the one k-means chooses.
    """
    return [
        gcom_kernel(kernel, config, representative_warp(directory, kernel, representative))
        for kernel in directory.kernels
    ]
