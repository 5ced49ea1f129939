"""GCoM's interval profile of the representative warp: latencies, scoreboard, intervals.

Sections are those of docs/model/timing_traced.md, 4 and 5.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from dse.base.errors import InputError
from dse.timing.traced.gcom_config import GcomConfig
from dse.traces.opcodes import AddressSpace, OpClass, Opcode, Unit, is_cached
from dse.traces.sectored_cache import Hash, bank_cycles, make_hash
from dse.traces.warp_profile import L1_HIT, L1_MISS, L2_HIT, L2_MISS, WarpProfile

WRITE_BACK, WRITE_THROUGH, LOCAL_WB_GLOBAL_WT = range(3)
NO_WRITE_ALLOCATE, FETCH_ON_WRITE, LAZY_FETCH_ON_READ = range(3)

_L1_POLICIES = (
    (LOCAL_WB_GLOBAL_WT, NO_WRITE_ALLOCATE),
    (WRITE_THROUGH, NO_WRITE_ALLOCATE),
    (WRITE_THROUGH, LAZY_FETCH_ON_READ),
)
UNIT_KEYS: dict[OpClass, tuple[str, str]] = {
    OpClass.ALU: ("intLatency", "intInitIntv"),
    OpClass.INTEGER: ("intLatency", "intInitIntv"),
    OpClass.SP: ("fpLatency", "fpInitIntv"),
    OpClass.DP: ("dpLatency", "dpInitIntv"),
    OpClass.SFU: ("sfuLatency", "sfuInitIntv"),
    OpClass.BRANCH: ("specializedUnit1Latency", "specializedUnit1IntiIntv"),
    OpClass.TEXTURE: ("specializedUnit2Latency", "specializedUnit2IntiIntv"),
    OpClass.TENSOR: ("specializedUnit3Latency", "specializedUnit3IntiIntv"),
    OpClass.UNIFORM: ("specializedUnit4Latency", "specializedUnit4IntiIntv"),
}
"""Keys of the latency and initiation interval of each class; other classes take 1 and 1 cycle."""

_MOST_BANKS = 64


class ProfiledInterval(NamedTuple):
    """One interval: instructions n_k, then the stall s_k [cycle] that ends it.

    ``l1_*_misses`` are sectors of the representative warp (R_k, Wr_k); ``l2_*`` count warp instructions of all warps;
    ``dispatch`` [cycle] by unit (d_{k,u}); ``from_memory`` tells that a global or local load ends it (mem_k).
    """

    instructions: int
    stall: int
    l1_read_misses: int
    l1_write_misses: int
    l2_read_hits: int
    l2_read_misses: int
    l2_write_hits: int
    l2_write_misses: int
    from_memory: bool
    threads: int
    dispatch: dict[Unit, int]


class IntervalProfile(NamedTuple):
    """The representative warp in time: per instruction issue cycle, latency, dispatch cycles and memory dependence.

    ``issue_probability`` is p = I / (I + S), ``mean_instructions`` nbar = I / K.
    """

    issue: np.ndarray
    latency: np.ndarray
    dispatch: np.ndarray
    waits_for_memory: np.ndarray
    intervals: tuple[ProfiledInterval, ...]
    issue_probability: float
    mean_instructions: float


def writes_reach_dram(config: GcomConfig) -> bool:
    """Tell whether the L2's policy sends writes to DRAM; raises InputError where the original stops."""
    policy = config["L2WritePolicy"], config["L2WriteAllocatePolicy"]
    if policy in ((WRITE_BACK, LAZY_FETCH_ON_READ), (WRITE_BACK, FETCH_ON_WRITE)):
        return False
    if policy == (LOCAL_WB_GLOBAL_WT, NO_WRITE_ALLOCATE):
        return True
    raise InputError(
        f"{config.path}: L2WritePolicy = {policy[0]} with L2WriteAllocatePolicy = {policy[1]} is not covered; "
        "0 with 1 or 2, and 2 with 0 are"
    )


def register_read(source_count: int, config: GcomConfig) -> int:
    """Return the cycles of reading the operands: reg(i) = ceil((2 + [has a source]) / rho)  (section 4)."""
    return ceil((2 + (source_count > 0)) / config["regFileReadThroughput"])


def unit_timing(opcode: Opcode, config: GcomConfig) -> tuple[int, int]:
    """Return (L_c, II_c) of an opcode's class [cycle]; 1 and 1 for memory, barriers and exit."""
    if opcode.op_class not in UNIT_KEYS:
        return 1, 1
    latency, interval = (config[key] for key in UNIT_KEYS[opcode.op_class])
    return latency, max(interval // 2, 1) if opcode.half else interval


def load_latency(pooled: np.ndarray, config: GcomConfig) -> int:
    """Return trunc(L_L1 + L_L2 mu1 + L_DR mu1 mu2 + P_ld) [cycle]  (section 4)."""
    h1, x1, h2, x2 = (int(pooled[i]) for i in (L1_HIT, L1_MISS, L2_HIT, L2_MISS))
    mu1, mu2 = x1 / (x1 + h1), x2 / (x2 + h2)
    average = config["l1DLatency"] + (config["L2Latency"] * mu1 + config["dramLatency"] * mu1 * mu2)
    return int(average + config["loadPipeline"])


def store_latency(config: GcomConfig) -> int:
    """Return L_L1 + L_L2 (+ L_DR where writes reach DRAM) + P_st [cycle]  (section 4)."""
    policy = config["l1DWritePolicy"], config["l1DWriteAllocatePolicy"]
    if policy not in _L1_POLICIES:
        raise InputError(
            f"{config.path}: l1DWritePolicy = {policy[0]} with l1DWriteAllocatePolicy = {policy[1]} is not covered; "
            "1 with 0 or 2, and 2 with 0 are"
        )
    dram = config["dramLatency"] if writes_reach_dram(config) else 0
    return config["l1DLatency"] + config["L2Latency"] + dram + config["storePipeline"]


def instruction_timing(profile: WarpProfile, i: int, config: GcomConfig, banks: Hash) -> tuple[int, int]:
    """Return (L_i, dispatch cycles) of instruction i [cycle]  (section 4's table)."""
    opcode, space = profile.opcodes[profile.opcode[i]], profile.space[i]
    latency, dispatch = unit_timing(opcode, config)
    if profile.lanes[i] == 0:
        return config["computePipeline"], dispatch
    operands = register_read(profile.source_count[i], config)
    if is_cached(opcode.op_class, space):
        b = bank_cycles(profile.access[profile.access_at[i] : profile.access_at[i + 1]], banks)
        loads = opcode.op_class == OpClass.LOAD
        memory = load_latency(profile.pooled[i], config) if loads else store_latency(config)
        return memory + b + operands, b
    if opcode.op_class in (OpClass.LOAD, OpClass.STORE) and space == AddressSpace.SHARED:
        return config["sharedMemLatency"], dispatch
    return latency + config["computePipeline"] + operands, dispatch


class _Scoreboard:
    """Section 5's recurrence: when the registers' last writers are done, and whether they are memory."""

    def __init__(self) -> None:
        self.done: dict[int, int] = {}
        self.memory: dict[int, bool] = {}

    def issue(self, sources: list[int], previous: int) -> tuple[int, bool]:
        """Return (t_i, whether a memory operand counts as its cause): the flag follows the operands' order."""
        t, waits = previous + 1, False
        for register in sources:
            if register in self.done:
                t = max(t, self.done[register])
                waits = waits or (t > previous + 1 and self.memory[register])
        return t, waits

    def write(self, register: int, done: int, memory: bool) -> None:
        """Note the writer of a register."""
        self.done[register], self.memory[register] = done, memory


def l1_banks(config: GcomConfig) -> Hash:
    """Return how sectors are dealt to the L1's banks; raises InputError where there are too many."""
    if config["l1DnBank"] > _MOST_BANKS:
        raise InputError(f"{config.path}: l1DnBank = {config['l1DnBank']} is not covered; at most {_MOST_BANKS} are")
    return make_hash(config["l1DBankHashFunction"], config["l1DnBank"], config["l1DBankInterleaveByte"], config.path)


def _timings(profile: WarpProfile, config: GcomConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return latencies and dispatch cycles of all instructions."""
    banks = l1_banks(config)
    n = len(profile.pc)
    table = np.array([instruction_timing(profile, i, config, banks) for i in range(n)], np.int64).reshape(n, 2)
    return table[:, 0], table[:, 1]


def _issue_cycles(profile: WarpProfile, latency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return issue cycles t_i and the memory flags of all instructions  (section 5)."""
    board, t = _Scoreboard(), 0
    issue, waits = np.zeros(len(latency), np.int64), np.zeros(len(latency), bool)
    for i in range(len(latency)):
        t, waits[i] = board.issue(profile.sources[i, : profile.source_count[i]].tolist(), t)
        issue[i] = t
        if profile.destination[i] >= 0:
            memory = is_cached(profile.opcodes[profile.opcode[i]].op_class, profile.space[i])
            board.write(int(profile.destination[i]), t + int(latency[i]), memory)
    return issue, waits


def _interval(
    profile: WarpProfile, rows: range, dispatch: np.ndarray, stall: int, from_memory: bool
) -> ProfiledInterval:
    """Sum an interval's instructions  (section 5; H2 and X2 are all warps', R_k the representative's own)."""
    cycles: dict[Unit, int] = {}
    loads, stores = np.zeros(3, np.int64), np.zeros(3, np.int64)
    for i in rows:
        opcode = profile.opcodes[profile.opcode[i]]
        cycles[opcode.unit] = cycles.get(opcode.unit, 0) + int(dispatch[i])
        if profile.lanes[i] and is_cached(opcode.op_class, profile.space[i]):
            sums = loads if opcode.op_class == OpClass.LOAD else stores
            sums += (profile.own[i, L1_MISS], profile.pooled[i, L2_HIT], profile.pooled[i, L2_MISS])
    return ProfiledInterval(
        instructions=len(rows),
        stall=stall,
        l1_read_misses=int(loads[0]),
        l1_write_misses=int(stores[0]),
        l2_read_hits=int(loads[1]),
        l2_read_misses=int(loads[2]),
        l2_write_hits=int(stores[1]),
        l2_write_misses=int(stores[2]),
        from_memory=from_memory,
        threads=int(profile.lanes[rows.start : rows.stop].sum()),
        dispatch=cycles,
    )


def interval_profile(profile: WarpProfile, config: GcomConfig) -> IntervalProfile:
    """Return the intervals of the representative warp; raises InputError where it has no instructions."""
    where = f"{profile.kernel.path}: the representative warp {profile.warp}"
    if len(profile.pc) == 0:
        raise InputError(f"{where} has no instructions; choose another")
    latency, dispatch = _timings(profile, config)
    issue, waits = _issue_cycles(profile, latency)
    gaps = np.diff(issue, prepend=0) - 1
    opens = np.flatnonzero(gaps > 0)
    starts, stops = [0, *opens.tolist()], [*opens.tolist(), len(issue)]
    drain = int((issue[starts[-1] :] + latency[starts[-1] :]).max() - issue[-1] - 1)  # s_K
    if drain < 0:
        raise InputError(f"{where} ends before its last instruction issues: latencies of 0 cycles are not covered")
    stalls = [*gaps[opens].tolist(), drain]
    causes = [*waits[opens].tolist(), False]
    intervals = tuple(
        _interval(profile, range(a, b), dispatch, s, c)
        for a, b, s, c in zip(starts, stops, stalls, causes, strict=True)
    )
    total = len(issue)
    return IntervalProfile(
        issue, latency, dispatch, waits, intervals, total / (total + sum(stalls)), total / len(intervals)
    )
