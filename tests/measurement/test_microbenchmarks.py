"""Microbenchmarks on the CPU, in Pallas' interpreter: rings are one cycle, chases follow them, rows are written."""

import jax.numpy as jnp
import numpy as np
import pytest

from dse.measurement import measure as module
from dse.measurement.measure import STAYS, Care, measure
from dse.measurement.microbenchmarks import chase, empty_grid, ring
from dse.measurement.tasks import Task
from dse.workload import microbenchmarks as rows_of_them
from dse.workload.microbenchmarks import CHASE, GRID, LINE
from tests.measurement.test_measure import rows_of


@pytest.mark.parametrize("lines", [1, 2, 64, 1000])
def test_a_ring_passes_every_line_once(lines):
    words, place, seen = ring(lines), 0, []
    for _ in range(lines):
        seen.append(place)
        place = int(words[place])
    assert place == 0 and sorted(seen) == [LINE * i for i in range(lines)]


def test_a_chase_ends_where_its_hops_lead(monkeypatch):
    monkeypatch.setattr(rows_of_them, "LEAST_HOPS", 100)
    words, place = ring(64), 0
    for _ in range(100):
        place = int(words[place])
    assert int(chase(64, True)(jnp.asarray(words))[0]) == place


def test_ctas_of_an_empty_grid_copy_a_word():
    assert np.asarray(empty_grid(5, 256, True)(jnp.array([7], jnp.int32))).tolist() == [7]


def test_the_command_writes_rows_of_both(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_of_them, "LEAST_HOPS", 100)
    tiny = [
        Task("latency", CHASE, "int32", {"rows": 8, "cols": LINE}),
        Task("launch", GRID, "int32", {"rows": 3, "cols": 64}),
    ]
    monkeypatch.setattr(module, "tasks", lambda quick, only: tiny)
    answer = measure(tmp_path / "t.csv", platform="cpu", care=Care(repeats=3, run_s=0.0005, cold_bytes=2**14))
    assert answer.skipped == {}
    rows = rows_of(tmp_path / "t.csv")
    assert [(r["op"], r["source"], r["rows"], r["cols"]) for r in rows] == [
        (CHASE, STAYS, "8", "32"),
        (GRID, STAYS, "3", "64"),
    ]
    assert all(float(r["latency_us"]) > 0 for r in rows)
