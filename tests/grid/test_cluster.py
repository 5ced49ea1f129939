"""Shards on a Dask cluster and on several devices: the same bytes as on one, whoever dies."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid.machine import machine
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator, shards
from dse.grid.sweep import sweep
from tests.grid.trivial import CHUNK, trivial, with_chunks

distributed = pytest.importorskip("distributed", reason="install gpu-dse[cluster]")
cluster = pytest.importorskip("dse.grid.cluster")
CommClosedError = pytest.importorskip("distributed.comm").CommClosedError

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


class DyingWorker(cluster.SweepWorker):
    """A worker whose process dies the first ``deaths`` times that one of them is given the space."""

    log: str
    deaths: int

    def setup(self, worker: Any) -> None:
        with Path(self.log).open("a") as log:
            log.write("x")
        if Path(self.log).stat().st_size <= self.deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        super().setup(worker)


@pytest.mark.slow
@pytest.mark.parametrize("deaths", [1, 2])
def test_workers_that_die_while_joining_end_no_sweep(workers, deaths: int, tmp_path: Path, monkeypatch) -> None:
    def dying_worker(evaluator: SpaceEvaluator) -> DyingWorker:
        plugin = DyingWorker(evaluator)
        plugin.log, plugin.deaths = str(tmp_path / "log"), deaths
        return plugin

    monkeypatch.setattr(cluster, "SweepWorker", dying_worker)
    sweep(trivial(2_000, tmp_path), tmp_path / "alone")
    sweep(trivial(2_000, tmp_path), tmp_path / "out", cluster=workers)
    assert (tmp_path / "log").stat().st_size > deaths
    same_bytes(tmp_path / "out", tmp_path / "alone")


class Joining:
    """A client whose workers die whenever they are given a plugin; its scheduler answers or does not."""

    def __init__(self, answers: bool) -> None:
        self.scheduler, self.tried, self._answers = self, 0, answers

    def register_plugin(self, *_: object, **__: object) -> None:
        self.tried += 1
        raise CommClosedError("closed")

    def identity(self) -> None:
        """What a scheduler is asked."""

    def sync(self, *_: object, **__: object) -> None:
        if not self._answers:
            raise TimeoutError


@pytest.mark.parametrize(("answers", "tried"), [(True, cluster.DEATHS + 1), (False, 1)])
def test_a_space_is_sent_again_as_long_as_the_scheduler_answers(answers: bool, tried: int, tmp_path: Path) -> None:
    client, plugin = Joining(answers), cluster.SweepWorker(SpaceEvaluator(trivial(1_000, tmp_path)))
    with pytest.raises(OSError, match="closed"), ExitStack() as stack:
        cluster._registered(client, plugin, stack)
    assert client.tried == tried


@pytest.mark.slow
def test_a_local_cluster_listens_on_this_machine_alone() -> None:
    with ExitStack() as stack:
        client = stack.enter_context(cluster._client("local:1", stack))
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        assert all(worker.startswith("tcp://127.0.0.1:") for worker in client.scheduler_info()["workers"])
        assert "//127.0.0.1:" in client.dashboard_link


def recipe(heading: str) -> list[str]:
    """Return the scripts below a heading of the page on many machines."""
    page = (Path(__file__).parents[2] / "docs" / "many_machines.md").read_text(encoding="utf-8")
    return re.findall(r"^```bash\n(.*?)^```", page.partition(heading)[2], re.MULTILINE | re.DOTALL)


@pytest.fixture
def with_certificates(tmp_path: Path) -> dict[str, str]:
    """Return the environment of Dask with certificates, made and named as the page does."""
    if shutil.which("openssl") is None:
        pytest.skip("install openssl")
    make, name = recipe("### Certificates")
    script = f"{make}\n{name}\nenv -0"
    home = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-e", "-c", script], env=home, capture_output=True, text=True, check=True)
    told = dict(line.partition("=")[::2] for line in done.stdout.split("\0"))
    return {name: value for name, value in told.items() if name.startswith("DASK_")}


@pytest.mark.slow
def test_certificates_keep_others_out(with_certificates: dict[str, str], tmp_path: Path) -> None:
    """In processes of their own: Dask reads its environment when it is imported."""
    sweep(trivial(1_000, tmp_path), tmp_path / "alone")
    with_them, without = os.environ | with_certificates, dict(os.environ)
    with dask_processes(tmp_path / "scheduler.json", with_them) as (_, address):
        assert address.startswith("tls://")
        code = "import sys; from dse.grid.sweep import sweep; from tests.grid.trivial import trivial; "
        code += "from pathlib import Path; at = Path(sys.argv[1]); "
        code += "sweep(trivial(1_000, at), at / sys.argv[2], cluster=sys.argv[3])"
        call = [sys.executable, "-c", code, str(tmp_path)]
        run = partial(subprocess.run, cwd=Path(__file__).parents[2], capture_output=True, text=True)
        done = run([*call, "out", address], env=with_them)
        assert done.returncode == 0, done.stderr
        same_bytes(tmp_path / "out", tmp_path / "alone")
        for other in (address, address.replace("tls://", "tcp://")):
            refused = run([*call, "no", other], env=without)
            assert "InputError" in refused.stderr and "no scheduler answers" in refused.stderr
    assert not (tmp_path / "no").exists()


@pytest.fixture
def scheduler(tmp_path: Path):
    """Yield the process and the address of a scheduler that has one worker, each a process of its own."""
    with dask_processes(tmp_path / "scheduler.json", dict(os.environ)) as started:
        yield started


@contextmanager
def dask_processes(file: Path, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a scheduler, which writes its address into ``file``, and a worker; yield the scheduler and its address."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(file)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    quiet = {"cwd": Path(__file__).parents[2], "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([*command, "--no-dashboard"], env=environment, **quiet) for command in (dask, worker)]
    try:
        while not file.exists():
            time.sleep(0.1)
        yield started[0], json.loads(file.read_text())["address"]
    finally:
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
