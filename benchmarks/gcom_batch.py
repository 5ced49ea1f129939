"""GCoM on one trace for a batch of designs in one compiled call; :mod:`dse.timing.traced.gcom` is its scalar twin.

What needs no new cache simulation varies: latencies, initiation intervals, pipeline depths, bandwidths, clock, issue
rate, sub-cores, queues and MSHRs. In 64 bits it equals the twin to rounding (tests/benchmarks/test_gcom_batch.py).
Sections are those of docs/model/timing_traced.md.

Called from Python alone: GCoM is the reference that AMALI stands on, spaces are swept with AMALI, MDM or the roofline.
A profile comes from :func:`dse.traces.cache_simulation.simulate`; benchmarks/README.md says how fast a batch is.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.errors import InputError, accepted
from dse.timing.traced.gcom import Placement, place, sm_waves
from dse.timing.traced.gcom_config import GcomConfig
from dse.timing.traced.gcom_profile import UNIT_KEYS, l1_banks, store_latency, writes_reach_dram
from dse.timing.traced.scoreboard import Lone, lone_warp
from dse.timing.traced.traced_intervals import over_intervals
from dse.traces.opcodes import AddressSpace, OpClass, Unit, is_cached
from dse.traces.sectored_cache import bank_cycles
from dse.traces.segments import COMPUTE, GLOBAL, make_segments
from dse.traces.warp_profile import L1_HIT, L1_MISS, L2_HIT, L2_MISS, WarpProfile

VARYING = (
    *dict.fromkeys(key for keys in UNIT_KEYS.values() for key in keys),
    "coreFreq", "numSubcorePerSM", "subcoreIssueRate", "computePipeline", "loadPipeline", "storePipeline",
    "regFileReadThroughput", "operandCollectorQue", "fuQue", "nMSHR", "l1DLatency", "sharedMemLatency", "L2Latency",
    "dramLatency", "maxNoCBW", "maxDRAMBW",
)  # fmt: skip
"""Keys of a configuration that a batch may vary."""

COMPONENTS = (
    "cycles", "base", "com_data", "com_struct", "mem_data", "mem_struct", "idle",
    "last_interval", "noc", "dram", "mshr", "l1_bank",
)  # fmt: skip
"""The fields of :class:`dse.timing.traced.gcom.Stack`."""


class _Row(NamedTuple):
    """What decides an instruction's latency: kind, its unit's key, [has a source], bank cycles, H1, X1, H2, X2."""

    kind: str
    key: str = ""
    source: int = 0
    banks: int = 0
    pooled: tuple[int, ...] = ()


class _Counts(NamedTuple):
    """Counts of the representative warp by segment; ``dispatch`` of the compute units, then ``memory`` [cycle]."""

    instructions: Any
    dispatch: tuple[Any, ...]
    memory: Any
    l1_reads: Any
    l1_writes: Any
    l2: tuple[Any, Any, Any, Any]


class GcomBatch:
    """A profiled kernel and the configuration it was simulated for; call it with columns of VARYING keys.

    Returns a dictionary of COMPONENTS [cycle], arrays of shape (designs,). Raises InputError for a key that may not
    vary.
    """

    def __init__(self, profile: WarpProfile, config: GcomConfig) -> None:
        self.profile, self.config = profile, config
        self.at = place(profile.kernel.header, config, str(profile.kernel.path))
        self._opcodes = [profile.opcodes[k] for k in profile.opcode]
        store_latency(config)  # refuses policies that are not covered

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, Array]:
        """Return the stack of each design [cycle]; what a column does not vary is the configuration's."""
        for key in columns:
            if key not in VARYING:
                raise InputError(f"{key!r} cannot vary in a batch of one simulation; {accepted(key, VARYING)}")
        return self._compiled({key: jnp.asarray(column, float) for key, column in columns.items()})

    @cached_property
    def _compiled(self) -> Any:
        return jax.jit(self._stacks)

    def _stacks(self, columns: dict[str, Array]) -> dict[str, Array]:
        c: dict[str, Array] = {key: jnp.asarray(float(self.config[key])) for key in VARYING} | columns
        designs = jnp.broadcast_shapes(*(jnp.shape(v) for v in c.values()))
        rows = list(dict.fromkeys(self._rows))
        latency = jnp.stack([jnp.broadcast_to(self._latency(row, c), designs) for row in rows])
        number = np.array([rows.index(row) for row in self._rows])
        p = self.profile
        segments = make_segments(p.destination, p.sources, p.source_count, number, self._causes)
        at = lone_warp(segments, latency)
        counts = self._counts(segments, c, designs)
        waves = [
            w for ctas in (self.at.more_ctas, self.at.fewer_ctas) for _, w in (sm_waves(ctas, self.at) if ctas else [])
        ]
        sums = over_intervals(
            segments,
            latency,
            counts,
            lambda open_, stall, cause: {
                w: self._interval(open_, stall, cause, at, w, c, last=False) for w in set(waves)
            },
            lambda open_: {w: self._interval(open_, at.drain, at.drain_cause, at, w, c, last=True) for w in set(waves)},
            by_operand_order=True,
        )
        return _kernel(sums, self.at)

    @cached_property
    def _rows(self) -> list[_Row]:
        banks, p, rows = l1_banks(self.config), self.profile, []
        for i, (opcode, space) in enumerate(zip(self._opcodes, p.space, strict=True)):
            source = int(p.source_count[i] > 0)
            if p.lanes[i] == 0:
                rows.append(_Row("inactive"))
            elif is_cached(opcode.op_class, space):
                b = int(bank_cycles(p.access[p.access_at[i] : p.access_at[i + 1]], banks))
                loads = opcode.op_class == OpClass.LOAD
                rows.append(
                    _Row("load", "", source, b, tuple(p.pooled[i].tolist())) if loads else _Row("store", "", source, b)
                )
            elif opcode.op_class in (OpClass.LOAD, OpClass.STORE) and space == AddressSpace.SHARED:
                rows.append(_Row("shared"))
            else:
                rows.append(_Row("compute", UNIT_KEYS.get(opcode.op_class, ("", ""))[0], source))
        return rows

    @cached_property
    def _causes(self) -> np.ndarray:
        cached = [is_cached(o.op_class, s) for o, s in zip(self._opcodes, self.profile.space, strict=True)]
        return np.where(cached, GLOBAL, COMPUTE)

    def _latency(self, row: _Row, c: dict[str, Array]) -> Array:
        """L_i of section 4's table."""
        if row.kind == "inactive":
            return c["computePipeline"]
        if row.kind == "shared":
            return c["sharedMemLatency"]
        operands = jnp.ceil((2 + row.source) / c["regFileReadThroughput"])
        if row.kind == "compute":
            return (c[row.key] if row.key else 1.0) + c["computePipeline"] + operands
        if row.kind == "store":
            dram = c["dramLatency"] if writes_reach_dram(self.config) else 0.0
            return c["l1DLatency"] + c["L2Latency"] + dram + c["storePipeline"] + row.banks + operands
        h1, x1, h2, x2 = (row.pooled[k] for k in (L1_HIT, L1_MISS, L2_HIT, L2_MISS))
        mu1, mu2 = x1 / (x1 + h1), x2 / (x2 + h2)
        average = c["l1DLatency"] + (c["L2Latency"] * mu1 + c["dramLatency"] * mu1 * mu2)
        return jnp.floor(average + c["loadPipeline"]) + row.banks + operands

    def _counts(self, segments: Any, c: dict[str, Array], designs: tuple[int, ...]) -> _Counts:
        p, n = self.profile, len(self._opcodes)
        dispatch: dict[Unit, Array] = {}
        for (unit, key, half), here in self._dispatches().items():
            interval = jnp.maximum(jnp.floor(c[key] / 2), 1.0) if half else (c[key] if key else jnp.ones(()))
            by_segment = jnp.asarray(segments.total(here), float).reshape(-1, *(1 for _ in designs))
            dispatch[unit] = dispatch.get(unit, 0.0) + by_segment * interval
        active = np.array([p.lanes[i] > 0 and r.kind in ("load", "store") for i, r in enumerate(self._rows)])
        loads = active & np.array([r.kind == "load" for r in self._rows])
        stores = active & ~loads
        zero = jnp.zeros((len(segments.length), *(1 for _ in designs)))

        def total(values: np.ndarray) -> Array:
            return jnp.asarray(segments.total(values.astype(float)), float)

        return _Counts(
            instructions=total(np.ones(n)),
            dispatch=tuple(dispatch.get(unit, zero) for unit in Unit if unit != Unit.MEM),
            memory=dispatch.get(Unit.MEM, zero),
            l1_reads=total(p.own[:, L1_MISS] * loads),
            l1_writes=total(p.own[:, L1_MISS] * stores),
            l2=tuple(total(p.pooled[:, k] * kind) for kind in (loads, stores) for k in (L2_HIT, L2_MISS)),  # pyright: ignore[reportArgumentType]
        )

    def _dispatches(self) -> dict[tuple[Unit, str, bool], np.ndarray]:
        """Return the instructions [i] by unit, key of the initiation interval ("" is 1) and [packed FP16]; b for L1."""
        out: dict[tuple[Unit, str, bool], np.ndarray] = {}
        for i, (opcode, row) in enumerate(zip(self._opcodes, self._rows, strict=True)):
            key = UNIT_KEYS.get(opcode.op_class, ("", ""))[1]
            here = out.setdefault((opcode.unit, key, opcode.half), np.zeros(len(self._opcodes)))
            here[i] = max(row.banks, 1)
        return out

    def _interval(
        self, k: _Counts, stall: Array, cause: Array, at: Lone, warps: int, c: dict[str, Array], *, last: bool
    ) -> dict[str, Array]:
        """Return the stack of one interval with W resident warps (section 6)."""
        parts = [
            _data(k.instructions, stall, cause, at, warps, c, self.config["wrapSchedulePolicy"], last),
            _structural(k, stall, warps, c),
            _contention(k, warps, self.at.active_sms, c, writes_reach_dram(self.config), self.config),
        ]
        zero = jnp.zeros_like(stall)
        return {name: sum((part.get(name, zero) for part in parts), zero) for name in COMPONENTS}


def _split(warps: int, Q: Array) -> tuple[Array, Array, Array, Array]:
    """Return (x, y, q, q')  (section 6.1)."""
    x = jnp.ceil(warps / Q)
    q = warps - Q * jnp.floor(warps / Q)
    q = jnp.where(q == 0, Q, q)
    return x, jnp.maximum(x - 1, 0.0), q, Q - q


def _hiding(n: Array, stall: Array, at: Lone, others: Array, r: Array, gto: bool) -> tuple[Array, Array, Array]:
    """Return (O, V, Z)  (section 6.2)."""
    p, nbar = at.issue_probability, at.mean_instructions
    O_X, V_X = (others * nbar / r, jnp.minimum(stall * p, 1.0) * others * nbar) if gto else (others * n / r, others * p)
    return O_X, V_X, jnp.maximum(stall - V_X / r, 0.0)


def _data(
    n: Array, stall: Array, cause: Array, at: Lone, warps: int, c: dict[str, Array], policy: str, last: bool
) -> dict[str, Array]:
    """Base, data stall and intra-SM idle  (6.1 to 6.5)."""
    Q, r, gto = c["numSubcorePerSM"], c["subcoreIssueRate"], policy == "gto"
    x, y, q, q_ = _split(warps, Q)
    O_x, V_x, Z_x = _hiding(n, stall, at, jnp.maximum(x - 1, 0.0), r, gto)
    some = (q_ > 0) & (y > 0)
    O_y, V_y, Z_y = (jnp.where(some, v, 0.0) for v in _hiding(n, stall, at, jnp.maximum(y - 1, 0.0), r, gto))
    base = ((n / r + O_x) * q + jnp.where(y > 0, (n / r + O_y) * q_, 0.0)) / Q
    stalled = (Z_x * q + Z_y * q_) / Q
    idle = jnp.where(y > 0, (O_x - V_x / r) - (O_y - V_y / r), n / r + O_x + Z_x) * q_ / Q
    memory, scoreboard = cause == GLOBAL, jnp.zeros_like(stalled)
    if last:
        scoreboard = stalled + base
        stalled = stalled + base
        idle = idle + jnp.where(y > 0, Z_y - Z_x, n / r + O_x) * q_ / Q
        memory = scoreboard > 0
    return {
        "cycles": base + stalled + idle,
        "base": base,
        "com_data": jnp.where(memory, 0.0, stalled),
        "mem_data": jnp.where(memory, stalled, 0.0),
        "idle": idle,
        "last_interval": scoreboard,
    }


def _structural(k: _Counts, stall: Array, warps: int, c: dict[str, Array]) -> dict[str, Array]:
    """Structural stalls inside the SM  (section 6.6)."""
    Q = c["numSubcorePerSM"]
    _, y, q, _ = _split(warps, Q)
    a = jnp.where(y > 0, Q, q)
    T = k.instructions * warps
    lo, memory, compute = T / a, k.memory * warps, [d * warps / a for d in k.dispatch]
    most, together, units = memory, jnp.zeros_like(lo), jnp.where(memory > 0, 1.0, 0.0)
    for d in compute:
        most, together, units = jnp.maximum(most, d), together + d, units + jnp.where(d > 0, 1.0, 0.0)
    e = jnp.maximum(most, lo) - lo
    u = jnp.maximum(T - (c["fuQue"] * units + jnp.floor(c["operandCollectorQue"] / Q)), 0.0)
    e = e * u / T + jnp.maximum(e * (T - u) / T - stall, 0.0)
    a_m, a_c = jnp.maximum(memory - lo, 0.0), jnp.maximum(together - lo, 0.0)
    z = jnp.where(a_m + a_c == 0, 1.0, a_m + a_c)
    return {"cycles": e, "com_struct": e * a_c / z, "mem_struct": e * a_m / z, "l1_bank": e * a_m / z}


def _contention(
    k: _Counts, warps: int, A: int, c: dict[str, Array], writes_to_dram: bool, config: GcomConfig
) -> dict[str, Array]:
    """Queueing in MSHRs, network and DRAM  (section 6.7)."""
    sector, M = config["l1DLineSize"] / config["nSectorPerLine"], c["nMSHR"]
    t_N, t_D = c["coreFreq"] * sector / c["maxNoCBW"], c["coreFreq"] * sector / c["maxDRAMBW"]
    m, m_w = _rate(k.l2[1], k.l2[0]), _rate(k.l2[3], k.l2[2])
    rd, wr = k.l1_reads * warps, k.l1_writes * warps
    divergent, rd_ = rd > M, jnp.minimum(rd, M)
    D = rd_ * m + (wr * m_w if writes_to_dram else 0.0)
    saturated = t_N * (rd_ + wr) * A > c["L2Latency"] + c["dramLatency"]
    phi = jnp.where(divergent & saturated, 1.0, 0.5)
    noc, dram = phi * A * (rd_ + wr) * t_N, phi * A * D * t_D
    batch = c["L2Latency"] + m * c["dramLatency"] + phi * A * rd_ * (t_N + m * t_D)
    mshr = jnp.where(divergent, batch * (jnp.ceil(rd / M) - 1), 0.0)
    return {
        "cycles": noc + dram + mshr,
        "mem_data": noc + dram,
        "mem_struct": mshr,
        "noc": noc,
        "dram": dram,
        "mshr": mshr,
    }


def _rate(misses: Array, hits: Array) -> Array:
    return misses / jnp.maximum(misses + hits, 1.0)


def _kernel(waves: dict[int, dict[str, Array]], at: Placement) -> dict[str, Array]:
    """Average the SMs, fill the shorter up with idle, and add a cycle to base  (sections 2 and 7)."""
    A, fewer_sms = at.active_sms, at.active_sms - at.more_sms

    def sm(ctas: int, count: int) -> dict[str, Array]:
        times = [(times, w) for times, w in sm_waves(ctas, at)] if count else []
        return {name: sum((n * waves[w][name] for n, w in times), jnp.zeros(())) for name in COMPONENTS}

    more, fewer = sm(at.more_ctas, at.more_sms), sm(at.fewer_ctas, fewer_sms)
    longest = jnp.maximum(more["cycles"], fewer["cycles"])  # T
    out = {name: more[name] * at.more_sms / A + fewer[name] * fewer_sms / A for name in COMPONENTS}
    out["idle"] += (longest - more["cycles"]) * at.more_sms / A + (longest - fewer["cycles"]) * fewer_sms / A
    out["base"] += 1.0
    out["cycles"] = longest + 1.0
    return out
