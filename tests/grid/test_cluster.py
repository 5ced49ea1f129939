"""Shards on a Dask cluster and on several devices: the same bytes as on one, whoever dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid.machine import machine
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator, shards
from dse.grid.sweep import sweep
from tests.grid.trivial import CHUNK, trivial, with_chunks

distributed = pytest.importorskip("distributed", reason="install gpu-dse[cluster]")
cluster = pytest.importorskip("dse.grid.cluster")

FILES = ("points.parquet", "pareto.parquet")
SLOW = 0.1


class LoggingWorker(cluster.SweepWorker):
    """A worker that takes its time and writes each shard that it begins into a file."""

    log: str
    unlike: bool = False

    def evaluate(self, shard: Shard, keep_all: bool) -> tuple[ShardResult, dict[str, str]]:
        with Path(self.log).open("a") as log:
            log.write(f"{shard.number}\n")
        time.sleep(SLOW)
        evaluated, theirs = super().evaluate(shard, keep_all)
        return evaluated, theirs | ({"processor": "another"} if self.unlike else {})


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Yield a cluster of two processes whose workers tell what they begin in ``tmp_path / "log"``."""

    def logging_worker(evaluator: SpaceEvaluator) -> LoggingWorker:
        plugin = LoggingWorker(evaluator)
        plugin.log = str(tmp_path / "log")
        return plugin

    monkeypatch.setattr(cluster, "SweepWorker", logging_worker)
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as dask:
        yield dask


def processes(dask) -> list[int]:
    """Return the process ids of a cluster's workers."""
    with distributed.Client(dask, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def same_bytes(one: Path, other: Path, files: Sequence[str] = FILES) -> None:
    for name in files:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.slow
def test_two_workers_one_of_them_killed(workers, tmp_path: Path) -> None:
    size = 20_000
    alone = sweep(trivial(size, tmp_path), tmp_path / "alone")
    counts: list[int] = []

    def progress(count: int) -> None:
        counts.append(count)
        if len(counts) == 8:
            os.kill(processes(workers)[0], signal.SIGKILL)

    result = sweep(trivial(size, tmp_path), tmp_path / "out", progress, cluster=workers)
    assert sum(counts) == result.n == size
    assert result.summary()["pareto"] == alone.summary()["pareto"]
    same_bytes(tmp_path / "out", tmp_path / "alone")
    begun = (tmp_path / "log").read_text().split()
    total = len(shards(size, CHUNK))
    assert set(map(int, begun)) == set(range(total))
    assert len(begun) - total <= 3  # what the dead worker had in hand, and what was not fetched from it yet


@pytest.mark.slow
def test_workers_come_go_and_die(workers, tmp_path: Path) -> None:
    size, counts = 200_000, []
    sweep(trivial(size, tmp_path), tmp_path / "alone", keep="front")

    def progress(count: int) -> None:
        counts.append(count)
        if len(counts) in (5, 25):
            os.kill(processes(workers)[0], signal.SIGKILL)
        if len(counts) == 15:
            workers.scale(3)
        if len(counts) == 40:
            workers.scale(1)

    sweep(trivial(size, tmp_path), tmp_path / "out", progress, keep="front", cluster=workers)
    assert sum(counts) == size
    for name in ("sample.parquet", "pareto.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


@pytest.mark.slow
def test_workers_unlike_this_machine_are_reported(workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = machine()["processor"]

    def other_worker(evaluator: SpaceEvaluator) -> LoggingWorker:
        plugin = LoggingWorker(evaluator)
        plugin.log, plugin.unlike = str(tmp_path / "log"), True
        return plugin

    monkeypatch.setattr(cluster, "SweepWorker", other_worker)
    result = sweep(trivial(1_000, tmp_path), cluster=workers)
    assert result.notes == (
        f"workers with processor another instead of {ours or 'none'}: equal to one machine's result within about 1e-6, "
        "not to the bit",
    )


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("local:none", "give local:N with a whole number"),
        ("tcp://127.0.0.1:1", "no scheduler answers"),
        ("nonsense://x", "no scheduler answers"),
    ],
)
def test_no_cluster_is_a_sentence(address: str, sentence: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    with pytest.raises(InputError, match=sentence):
        sweep(trivial(1_000, tmp_path), tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def scheduler(tmp_path: Path):
    """Yield the process and the address of a scheduler that has one worker, each a process of its own."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(file)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    root = Path(__file__).parents[2]
    quiet = {"cwd": root, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([*command, "--no-dashboard"], **quiet) for command in (dask, worker)]
    while not file.exists():
        time.sleep(0.1)
    yield started[0], json.loads(file.read_text())["address"]
    for process in started:
        process.terminate()
    for process in started:
        process.wait()


@pytest.mark.slow
def test_a_lost_scheduler_is_a_sentence_and_loses_nothing(scheduler, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    process, address = scheduler
    space, counts = trivial(20_000, tmp_path), []
    sweep(space, tmp_path / "alone")

    def progress(count: int) -> None:
        counts.append(count)
        if len(counts) == 10:
            process.kill()

    with pytest.raises(InputError, match=r"the scheduler is lost \(.*\); give --resume to go on"):
        sweep(space, tmp_path / "out", progress, cluster=address)
    result = sweep(space, tmp_path / "out", resume=True)
    assert "went on after" in result.notes[0]
    same_bytes(tmp_path / "out", tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["all", "front"])
def test_four_devices_give_the_bytes_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    sweep(trivial(10_000, tmp_path), tmp_path / "one", keep=keep)
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.grid.trivial", str(tmp_path / "four"), keep, "10000"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "devices"]
    same_bytes(tmp_path / "four", tmp_path / "one", FILES if keep == "all" else ("sample.parquet", "pareto.parquet"))
    records = [json.loads((tmp_path / which / "run.json").read_text()) for which in ("one", "four")]
    assert [record.pop("timing") for record in records]
    assert records[0] == records[1]
