"""``dse measure`` on the CPU: the whole path on a tiny grid, taken up again, launches counted, refusals."""

import csv
import json

import jax
import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.measured.protocol import protocol_of
from dse.measured.table import read_times
from dse.measurement import measure as module
from dse.measurement.measure import COLD, HOST_BYTES, ROTATES, STAYS, Care, find_device, measure
from dse.measurement.program import NotMeasurableError
from dse.measurement.table import COLUMNS
from dse.measurement.tasks import Task

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
        assert protocol_of(row["source"]).name == row["source"]
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


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="run on a machine without a GPU")
def test_without_a_gpu_it_refuses_in_one_sentence(tmp_path, capsys):
    assert run_command(["measure", "-o", str(tmp_path / "table.csv")]) == 2
    err = capsys.readouterr().err
    assert "finds no gpu" in err
    assert "cpu" in err
    assert "jax[cuda13]" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "table.csv").exists()


def test_what_no_memory_holds_is_refused():
    session = module.Session(find_device("cpu"), None, CARE, True)
    huge = Task("gemm", "gemm", "fp16", {"m": 8, "n": HOST_BYTES // 64, "k": 64})
    with pytest.raises(NotMeasurableError, match="quarter of the device's memory"):
        list(module.rows_of(huge, session, lambda head: False))
