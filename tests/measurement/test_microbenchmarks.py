"""Microbenchmarks on the CPU, in Pallas' interpreter: rings are one cycle, chases follow them, rows are written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.device_programs import lowered_text
from dse.measurement import measure as module
from dse.measurement.measure import STAYS, Care, measure
from dse.measurement.microbenchmarks import STRIDE, chase, empty_grid, loop_shape, ring, unit_loop
from dse.measurement.tasks import Task
from dse.workload import microbenchmarks as rows_of_them
from dse.workload.microbenchmarks import BLOCK, CHASE, FMA_STEPS, GRID, LINE, LOOPS, TILE, Loop
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


def test_a_loop_of_tensor_cores_multiplies_its_tiles_in_turn():
    tiles = np.random.default_rng(0).standard_normal((2, TILE, TILE)).astype(jnp.bfloat16)
    a, b = tiles.astype(np.float32)
    found = unit_loop("loop_tensor", 3, 5, True)(jnp.asarray(tiles))
    np.testing.assert_allclose(found, 3 * a @ b + 2 * b @ a, rtol=1e-4, atol=1e-4)


def test_a_loop_of_lanes_multiplies_and_adds():
    x = np.linspace(-1, 1, BLOCK).astype(np.float32)
    found = unit_loop("loop_fp32", 2, 3, True)(jnp.asarray(x))
    np.testing.assert_allclose(found, 1 + (x - 1) * 0.9990234375 ** (3 * FMA_STEPS), rtol=1e-5, atol=1e-6)


def test_a_loop_of_reads_passes_every_block_once_before_one_again():
    words = np.repeat(2.0 ** -np.arange(16), BLOCK).astype(np.float32)
    found = unit_loop("loop_l2", 1, 16, True)(jnp.asarray(words))
    np.testing.assert_array_equal(found, np.full(BLOCK, 2 - 2.0**-15, np.float32))
    assert STRIDE % 2 == 1 and all(loop.words & (loop.words - 1) == 0 for loop in LOOPS.values())


@pytest.mark.parametrize("op", LOOPS)
def test_loops_are_lowered_for_a_gpu(op):
    shape = jax.ShapeDtypeStruct(loop_shape(op), jnp.bfloat16 if op == "loop_tensor" else jnp.float32)
    assert "triton" in lowered_text(unit_loop(op, 132, 64, False), "cuda", shape)


def test_the_command_writes_rows_of_loops(tmp_path, monkeypatch):
    small = {op: loop._replace(words=min(loop.words, 4 * BLOCK)) for op, loop in LOOPS.items()}
    assert all(isinstance(loop, Loop) for loop in small.values())
    monkeypatch.setattr("dse.measurement.microbenchmarks.LOOPS", small)
    tiny = [Task("power", op, loop.dtype, {"rows": 2, "cols": 2}) for op, loop in LOOPS.items()]
    monkeypatch.setattr(module, "tasks", lambda quick, only: tiny)
    answer = measure(tmp_path / "t.csv", platform="cpu", care=Care(repeats=3, run_s=0.0005, cold_bytes=2**14))
    assert answer.skipped == {}
    rows = rows_of(tmp_path / "t.csv")
    assert [(r["op"], r["dtype"], r["source"], r["rows"], r["cols"]) for r in rows] == [
        (op, loop.dtype, STAYS, "2", "2") for op, loop in LOOPS.items()
    ]
