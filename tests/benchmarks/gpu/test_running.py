"""Timing of programs where there is no GPU: calls that count themselves, and small spaces on a CPU."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.gpu import running
from benchmarks.gpu.programs import Call, searched, swept
from dse.evaluate.platform import CPU, PLATFORMS
from tests.benchmarks.test_gpu_program import RUN_KEYS
from tests.grid.trivial import trivial

SIZE = 30_000


@pytest.fixture(scope="module")
def device() -> Any:
    return jax.devices()[0]


def test_the_rate_counts_all_calls_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, events = [0.0], list[str]()

    def make() -> str:
        now[0] += 0.25
        events.append("call")
        return "running"

    monkeypatch.setattr(running.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(running.jax, "block_until_ready", lambda one: one and events.append("wait"))
    assert running.designs_per_second(Call(100, make), seconds=1.0) == pytest.approx(400.0)
    # A warm-up call; then each call is enqueued before the one ahead of it is waited for.
    assert events == ["call", "wait", "call", *["call", "wait"] * 3, "wait"]


def test_a_sweeps_call_is_its_own_program_on_a_part_of_the_grid(
    device: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_on_a_gpu = replace(CPU, apart=True, chunks=1, cheap_chunks=1, reduced_from=0)
    monkeypatch.setitem(PLATFORMS, "cpu", as_on_a_gpu)
    subject = swept(trivial(SIZE, tmp_path), device)
    subject.compile()
    assert subject.call
    call = subject.call()
    results, reduced = call.make()
    assert results == {}
    assert 0 < call.designs <= SIZE
    assert np.count_nonzero(np.asarray(reduced.code) >= 0) == call.designs


def test_a_generations_call_evaluates_it(device: Any, tmp_path: Path) -> None:
    subject = searched(trivial(SIZE, tmp_path), device)
    subject.compile()
    assert subject.call
    call = subject.call()
    assert call.designs == subject.designs
    times = np.asarray(call.make()["gemm.time_ms"])
    assert times.size == call.designs and np.all(times > 0)


def test_the_share_of_the_bound_where_it_is_known(device: Any, tmp_path: Path) -> None:
    make = partial(swept, trivial(SIZE, tmp_path))
    bound = {"projected_designs_per_second": 1e9, "bound_designs_per_second": 2e9}
    known = running.figures("small", make, device, {"small": bound}, seconds=0.1)
    assert tuple(known) == RUN_KEYS
    assert known["device"] == device.device_kind and known["projected_designs_per_second"] == 1e9
    assert math.isclose(known["share_of_bound"], known["measured_designs_per_second"] / 2e9)
    unknown = running.figures("small", make, device, {}, seconds=0.1)
    assert unknown["measured_designs_per_second"] > 0
    assert [name for name in RUN_KEYS if unknown[name] is None] == list(RUN_KEYS[3:6])
