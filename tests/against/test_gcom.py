"""GCoM (yonsei-hpcp/gcom): the original program's answers on small traces, from their inside to their totals."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from dse.timing.traced.gcom import GcomResult, Stack, gcom, gcom_trace
from dse.timing.traced.gcom_config import read_gcom_config
from dse.traces.trace_files import read_directory
from dse.traces.warp_profile import L1_HIT, L1_MISS, L2_HIT, L2_MISS, WarpProfile
from experiments import data

CONFIGS = ["RTX2060", "RTX2060_lrr"]
CASES = sorted(path.name for path in (data.GCOM / "traces").glob("*"))
TOLERANCE = 1e-9
NAMES = {
    "tot": "cycles",
    "base": "base",
    "comData": "com_data",
    "comStruct": "com_struct",
    "memData": "mem_data",
    "memStruct": "mem_struct",
    "idle": "idle",
    "scbLast": "last_interval",
    "noc": "noc",
    "dram": "dram",
    "mshr": "mshr",
    "l1bank": "l1_bank",
}
INTERVAL_NAMES = {
    "n": "instructions",
    "stall": "stall",
    "l1Rmiss": "l1_read_misses",
    "l1Wmiss": "l1_write_misses",
    "l2Rhit": "l2_read_hits",
    "l2Rmiss": "l2_read_misses",
    "l2Whit": "l2_write_hits",
    "l2Wmiss": "l2_write_misses",
    "hasMem": "from_memory",
    "activeThreads": "threads",
}

every_case = pytest.mark.parametrize(("config", "case"), [(c, t) for c in CONFIGS for t in CASES])


@cache
def answers(config: str, case: str) -> tuple[GcomResult, ...]:
    gpu = read_gcom_config(data.GCOM / "configs" / f"{config}.config")
    return tuple(gcom_trace(read_directory(data.GCOM / "traces" / case), gpu))


@cache
def expected(config: str, case: str) -> list[dict[str, Any]]:
    return json.loads((data.GCOM / "expected" / config / f"{case}.json").read_text())["kernels"]


def profiles(config: str, case: str, monkeypatch: pytest.MonkeyPatch) -> list[WarpProfile]:
    """Run a case and keep the representative warps on their way from the caches to the model."""
    kept: list[WarpProfile] = []

    def keep(profile: WarpProfile, gpu: Any) -> GcomResult:
        kept.append(profile)
        return gcom(profile, gpu)

    monkeypatch.setattr("dse.timing.traced.gcom.gcom", keep)
    answers.__wrapped__(config, case)
    return kept


def assert_stack(ours: Stack, theirs: dict[str, float], scale: float, what: str) -> None:
    for key, name in NAMES.items():
        assert abs(getattr(ours, name) - theirs[key]) <= TOLERANCE * scale, f"{what}: {name}"


@every_case
def test_caches(config: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for ours, theirs in zip(profiles(config, case, monkeypatch), expected(config, case), strict=True):
        rows = theirs["instructions"]
        assert ours.pc.tolist() == [row["pc"] for row in rows]
        assert [int(ours.opcodes[o].op_class) for o in ours.opcode] == [row["op"] for row in rows]
        assert ours.space.tolist() == [row["space"] for row in rows]
        assert np.diff(ours.access_at).tolist() == [row["sectors"] for row in rows]
        columns = {L1_HIT: "l1Hit", L1_MISS: "l1Miss", L2_HIT: "l2Hit", L2_MISS: "l2Miss"}
        for column, key in columns.items():
            assert ours.own[:, column].tolist() == [row[key] for row in rows], key
            assert ours.pooled[:, column].tolist() == [row["g" + key[0].upper() + key[1:]] for row in rows], key


@every_case
def test_instructions(config: str, case: str) -> None:
    for ours, theirs in zip(answers(config, case), expected(config, case), strict=True):
        rows, p = theirs["instructions"], ours.profile
        assert p.latency.tolist() == [row["lat"] for row in rows]
        assert p.dispatch.tolist() == [row["ii"] for row in rows]
        assert p.issue.tolist() == [row["issue"] for row in rows]
        assert p.waits_for_memory.tolist() == [bool(row["memDep"]) for row in rows]


@every_case
def test_intervals(config: str, case: str) -> None:
    for ours, theirs in zip(answers(config, case), expected(config, case), strict=True):
        p = ours.profile
        assert len(p.intervals) == len(theirs["intervals"]) == theirs["prob"]["nIntv"]
        for interval, row in zip(p.intervals, theirs["intervals"], strict=True):
            for key, name in INTERVAL_NAMES.items():
                assert getattr(interval, name) == row[key], f"interval {row['k']}: {name}"
            units = ";".join(f"{int(unit)}:{cycles}" for unit, cycles in sorted(interval.dispatch.items()))
            assert units == row["dispatch"], f"interval {row['k']}"
        assert p.issue_probability == pytest.approx(theirs["prob"]["issueProb"], rel=TOLERANCE)
        assert p.mean_instructions == pytest.approx(theirs["prob"]["avgIntvInsts"], rel=TOLERANCE)


@every_case
def test_stacks_of_intervals_and_sms(config: str, case: str) -> None:
    for ours, theirs in zip(answers(config, case), expected(config, case), strict=True):
        rows = iter(theirs["model_intervals"])
        for warps, stacks in ours.waves:
            for k, stack in enumerate(stacks):
                row = next(rows)
                assert (warps, k) == (row["W"], row["k"])
                assert_stack(stack, row, max(row["tot"], 1.0), f"W = {warps}, interval {k}")
        assert next(rows, None) is None
        assert_stack(ours.more, theirs["longsm"], theirs["gpu"]["tot"], "SMs with more CTAs")
        assert_stack(ours.fewer, theirs["lesssm"], theirs["gpu"]["tot"], "SMs with fewer CTAs")


@every_case
def test_kernels(config: str, case: str) -> None:
    results = json.loads((data.GCOM / "expected" / "results.json").read_text())[config][case]
    for ours, theirs in zip(answers(config, case), results, strict=True):
        assert ours.thread_instructions == theirs["numThreadInsts"]
        assert_stack(ours.stack, theirs, theirs["tot"], "kernel")
        s = ours.stack
        parts = s.base + s.com_data + s.com_struct + s.mem_data + s.mem_struct + s.idle
        assert parts == pytest.approx(s.cycles, rel=TOLERANCE)


def test_worked_example() -> None:
    """docs/model/timing_traced.md 11: one warp an SM, 64 dependent FFMA and EXIT."""
    (ours,) = answers("RTX2060", "c01_fp32_chain_1warp")
    assert ours.profile.latency[0] == 2 + 3 + 2
    assert [(k.instructions, k.stall) for k in ours.profile.intervals] == [(1, 6)] * 63 + [(2, 5)]
    s = ours.stack
    assert (s.base, s.com_data, s.mem_data, s.idle, s.cycles) == (17.25, 94.5, 1.75, 337.5, 451.0)
