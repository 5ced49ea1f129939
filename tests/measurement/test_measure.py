"""``dse measure`` on the CPU: the whole path on a tiny grid, taken up again, launches counted, refusals."""

import csv
import json

import jax
import jax.numpy as jnp
import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.measured.protocol import harness_of
from dse.measured.table import read_times
from dse.measurement import measure as module
from dse.measurement.grid import KINDS, Task, tasks
from dse.measurement.kernels import VECTOR, measured
from dse.measurement.measure import COLD, HOST_BYTES, ROTATES, STAYS, Care, find_device, measure
from dse.measurement.program import NotMeasurableError, check_launches, compiled, launch_count
from dse.measurement.stopwatch import times
from dse.measurement.table import COLUMNS, Table

GEMM = Task("gemm", "gemm", "bf16", {"m": 8, "n": 32, "k": 64})
TINY = [
    GEMM,
    Task(
        "attention",
        "attn_prefill",
        "bf16",
        {"batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 16, "seq_q": 32, "seq_kv": 32, "causal": 1},
    ),
    Task("vector", "add_rmsnorm", "bf16", {"rows": 8, "cols": 64}),
    Task("stream", "copy", "fp32", {"rows": 8, "cols": 64}),
]
CARE = Care(repeats=3, run_s=0.0005, cold_bytes=2**14)
SOURCES = {
    "gemm": {STAYS, ROTATES},
    "attn_prefill_xla": {STAYS, COLD},
    "add_rmsnorm": {STAYS, COLD},
    "copy": {STAYS, COLD},
}


@pytest.fixture
def tiny(monkeypatch):
    """The grid made small."""
    monkeypatch.setattr(module, "tasks", lambda quick, only: TINY)
    return TINY


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_grid_is_measured_written_and_read_as_a_measured_table(tiny, tmp_path):
    out, done = tmp_path / "table.csv", []
    answer = measure(out, platform="cpu", care=CARE, progress=done.append)
    rows = rows_of(out)
    assert tuple(rows[0]) == COLUMNS
    assert answer.rows == answer.new_rows == len(rows) == 8
    assert answer.skipped == {}
    assert len(done) == len(TINY)
    assert {r["op"]: {x["source"] for x in rows if x["op"] == r["op"]} for r in rows} == SOURCES
    for row in rows:
        assert 0 < float(row["rep_lo_us"]) <= float(row["latency_us"]) <= float(row["rep_hi_us"])
        assert row["power_w"] == ""
        assert "dispatch_us=" in row["notes"]
        assert harness_of(row["source"]).name == row["source"]
    assert len(read_times(out).frame) == 8


def test_a_second_run_measures_only_what_is_missing(tiny, tmp_path):
    out = tmp_path / "table.csv"
    measure(out, platform="cpu", care=CARE)
    lines = out.read_text(encoding="utf-8").splitlines()
    out.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20], encoding="utf-8")  # killed while writing
    answer = measure(out, platform="cpu", care=CARE)
    again = out.read_text(encoding="utf-8").splitlines()
    assert (answer.rows, answer.new_rows) == (8, 1)
    assert again[:-1] == lines[:-1]
    assert again[-1].split(",")[:4] == lines[-1].split(",")[:4]


def test_an_interrupted_run_keeps_what_was_measured(tiny, tmp_path, monkeypatch, capsys):
    out = tmp_path / "table.csv"

    def stop(task, session, has, whole=module.rows_of):
        if task is TINY[2]:
            raise KeyboardInterrupt
        return whole(task, session, has)

    monkeypatch.setattr(module, "rows_of", stop)
    assert run_command(["measure", "-o", str(out), "--device", "cpu", "--quick"]) == 130
    assert str(out) in capsys.readouterr().err
    rows = rows_of(out)
    assert {row["op"] for row in rows} == {"gemm", "attn_prefill_xla"}


def test_time_that_is_up_is_counted(tiny, tmp_path):
    answer = measure(tmp_path / "table.csv", platform="cpu", care=CARE, seconds=1e-9)
    assert (answer.rows, answer.skipped) == (0, {"time was up": len(TINY)})
    with pytest.raises(InputError, match="--seconds"):
        measure(tmp_path / "table.csv", platform="cpu", seconds=0)


def test_the_command_answers_in_json(tiny, tmp_path, capsys):
    out = tmp_path / "table.csv"
    tiny[:] = [GEMM]
    try:
        assert run_command(["measure", "-o", str(out), "--device", "cpu", "--quick", "--json"]) == 0
    finally:
        tiny[:] = ALL
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["table"], document["device"]) == (str(out), "cpu")
    assert document["rows"] == document["new_rows"] == 1  # 64 buffers of 4 kB leave no cache: no row with cold weights
    assert "no power" in captured.err


ALL = list(TINY)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="this machine has a GPU")
def test_without_a_gpu_it_refuses_in_one_sentence(tmp_path, capsys):
    assert run_command(["measure", "-o", str(tmp_path / "table.csv")]) == 2
    err = capsys.readouterr().err
    assert "finds no gpu" in err
    assert "cpu" in err
    assert "jax[cuda13]" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "table.csv").exists()


def test_other_tables_and_names_are_refused(tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"other.csv: is no table of dse measure"):
        Table(other)
    assert other.read_text(encoding="utf-8") == "a,b\n1,2\n"
    with pytest.raises(InputError, match="'gem'; did you mean 'gemm'"):
        tasks(only="gem")


@pytest.mark.parametrize("rounds", [1, 3, 40])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_no_launch_is_merged_or_left_out(rounds, dtype):
    operands = (jnp.ones((8, 64), dtype), jnp.ones((64, 32), dtype))
    one, many = (compiled(jnp.dot, [operands] * n, r) for n, r in ((1, 1), (6, rounds)))
    launches = 6 * min(rounds, 2)
    assert 0 <= check_launches(one, many, launches) <= 10
    with pytest.raises(NotMeasurableError, match="the compiler left"):
        check_launches(one, many, 10 * launches)
    bare = jax.jit(lambda a, b: [jnp.dot(a, b) for _ in range(6)]).lower(*operands).compile()
    with pytest.raises(NotMeasurableError):  # what happens without the barriers
        check_launches(one, bare, 6)


def test_more_rounds_take_more_time():
    operands = (jnp.ones((256, 256)), jnp.ones((256, 256)))
    took = []
    for rounds in (4, 40):
        program = compiled(jnp.dot, [operands] * 4, rounds)
        took.append(times(lambda program=program: program([operands] * 4), 1, 5).low)
    assert took[1] > 4 * took[0]


def test_a_launch_computes_the_operator():
    a, b = jax.random.normal(jax.random.key(0), (2, 16, 16))
    first, *_, last = compiled(jnp.dot, [(a, b)] * 3, 1)([(a, b)] * 3)
    assert jnp.allclose(first, a @ b, rtol=1e-5)
    assert jnp.allclose(last, a @ b, rtol=1e-5)


def test_vector_operators_are_what_their_names_say():
    x, y = jax.random.normal(jax.random.key(1), (2, 4, 8))
    norm = x / jnp.sqrt((x * x).mean(-1, keepdims=True))
    assert jnp.allclose(VECTOR["rmsnorm"](x), norm, atol=1e-5)
    total, normed = VECTOR["add_rmsnorm"](x, y)
    assert jnp.allclose(total, x + y)
    assert jnp.allclose(normed, VECTOR["rmsnorm"](x + y))
    assert jnp.allclose(VECTOR["silu_and_mul"](x, y), x / (1 + jnp.exp(-x)) * y, atol=1e-5)
    assert jnp.allclose(VECTOR["layernorm"](x).std(-1), 1, atol=1e-3)
    assert jnp.allclose(VECTOR["softmax"](x).sum(-1), 1)


def test_every_kind_is_planned_and_every_beginning_is_a_mixture():
    full, quick = tasks(), tasks(quick=True)
    assert {task.kind for task in full} == {task.kind for task in quick} == set(KINDS)
    assert len({task.words() for task in full}) == len(full) > 500
    assert 10 < len(quick) < 60
    assert {task.kind for task in full[:60]} == set(KINDS)
    assert {task.kind for task in tasks(only="vector,stream")} == {"vector", "stream"}
    for task in quick:
        assert measured(task).out_bytes() > 0


def test_what_no_memory_holds_is_refused():
    session = module.Session(find_device("cpu"), None, CARE, True)
    huge = Task("gemm", "gemm", "fp16", {"m": 8, "n": HOST_BYTES // 64, "k": 64})
    with pytest.raises(NotMeasurableError, match="quarter of the device's memory"):
        list(module.rows_of(huge, session, lambda head: False))


GRAPHED = """HloModule jit_program, is_scheduled=true

%wrapped_negate_computation (param_0: f32[8,8]) -> f32[8,8] {
  %param_0 = f32[8,8]{1,0} parameter(0)
  ROOT %negate.0 = f32[8,8]{1,0} negate(%param_0)
}

%command_buffer (p: bf16[8,8], p.1: bf16[8,8]) -> ((bf16[8,8], s8[1024]), (bf16[8,8], s8[1024]), f32[8,8]) {
  %p = bf16[8,8]{1,0} parameter(0)
  %p.1 = bf16[8,8]{1,0} parameter(1)
  %cublas-gemm.1 = (bf16[8,8]{1,0}, s8[1024]{0}) custom-call(%p, %p.1), custom_call_target="__cublas$gemm"
  %cublas-gemm.2 = (bf16[8,8]{1,0}, s8[1024]{0}) custom-call(%p, %p.1), custom_call_target="__cublas$gemm"
  %wrapped_negate = f32[8,8]{1,0} fusion(%p), kind=kLoop, calls=%wrapped_negate_computation
  ROOT %tuple = ((bf16[8,8]{1,0}, s8[1024]{0}), (bf16[8,8]{1,0}, s8[1024]{0}), f32[8,8]{1,0}) tuple(%cublas-gemm.1)
}

ENTRY %main (a: bf16[8,8], b: bf16[8,8]) -> (bf16[8,8], bf16[8,8]) {
  %a = bf16[8,8]{1,0} parameter(0)
  %b = bf16[8,8]{1,0} parameter(1)
  %call = ((bf16[8,8]{1,0}, s8[1024]{0}), f32[8,8]{1,0}) call(%a, %b), to_apply=%command_buffer
  %get-tuple-element = bf16[8,8]{1,0} get-tuple-element(%call), index=0
  %copy.1 = bf16[8,8]{1,0} copy(%get-tuple-element)
  ROOT %tuple.1 = (bf16[8,8]{1,0}, bf16[8,8]{1,0}) tuple(%get-tuple-element, %copy.1)
}
"""
"""What XLA writes for a GPU where launches stand in a CUDA graph, shortened."""


def test_launches_in_a_graph_count_and_copies_stand_apart():
    assert launch_count(GRAPHED) == (3, 1)
