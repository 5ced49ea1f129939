"""A sweep that is interrupted goes on: the same bytes, nothing finished evaluated again, other sweeps refused."""

import errno
import os
import pkgutil
import random
import resource
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid import checkpoint as checkpoint
from dse.grid.accumulator import Accumulator
from dse.grid.checkpoint import Checkpoint, leftovers
from dse.grid.result import SweepResult
from dse.grid.shard import ShardResult, SpaceEvaluator, shards
from dse.grid.store import results_in
from dse.grid.sweep import sweep
from dse.space.space import Space, space_from_mapping
from tests.grid.trivial import CHUNK, WAIT, trivial, with_chunks

SIZE = 10_000
FILES = {"all": ("points.parquet", "pareto.parquet"), "front": ("sample.parquet", "pareto.parquet")}


def start(out: Path, keep: str, size: int) -> subprocess.Popen[str]:
    """Start (or go on with) a slow sweep in a process of its own."""
    command = [sys.executable, "-m", "tests.grid.trivial", str(out), keep, str(size)]
    cache = {"JAX_COMPILATION_CACHE_DIR": f"{out}.cache", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, env=os.environ | cache, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str], out: Path, after: int, delay: float) -> None:
    """Kill a sweep ``delay`` seconds after it has begun so many more shards."""
    before = len(evaluated(out))
    while process.poll() is None and len(evaluated(out)) < before + after:
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.communicate()


def evaluated(out: Path) -> list[int]:
    """Return the numbers of the shards that were begun, over all processes."""
    log = Path(f"{out}.log")
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def counted(out: Path) -> set[int]:
    """Return the shards that an interrupted sweep has counted as finished."""
    state = out / "unfinished" / "state.npz"
    return set(np.load(state)["done"].tolist()) if state.exists() else set()


@cache
def compiled(digest: str, chunk: int, reduced: bool) -> dict[str, Any]:
    """Programs that the tests share: compilation takes longer than all else."""
    return {}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    create = SpaceEvaluator.__init__

    def sharing(self: SpaceEvaluator, space: Space, chunk: int | None = None, **options: Any) -> None:
        create(self, space, chunk, **options)
        reduced = bool(options.get("reduced"))
        self.evaluator._program._compiled = compiled(space.digest, self.chunk_size, reduced)

    monkeypatch.setattr(SpaceEvaluator, "__init__", sharing)
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "kills", "size"), [("all", 3, 5), ("all", 20, 3), ("front", 10, 20)])
def test_kills_change_nothing(tmp_path: Path, keep: str, kills: int, size: int) -> None:
    """A sweep that is killed so often and then left to end has the bytes of one that was left alone, and evaluates
    nothing again that it had counted; ``size`` of SIZE."""
    out, alone, draw = tmp_path / "killed", tmp_path / "alone", random.Random(kills)
    sweep(trivial(size * SIZE, tmp_path), alone, keep=keep)
    total = len(shards(size * SIZE, CHUNK))
    again: list[int] = []
    kept = 0
    for kill_it in (*[True] * kills, False):
        done, begun = counted(out), len(evaluated(out))
        process = start(out, keep, size * SIZE)
        if kill_it:
            kill(process, out, draw.randint(1, 2 * total // kills), draw.uniform(0, 2 * WAIT))
            kept += len(counted(out) - done)
        else:
            assert (process.communicate()[1], process.returncode) == ("", 0)
        again += [number for number in evaluated(out)[begun:] if number in done]
    assert again == []
    assert kept > total / 4
    assert not (out / "unfinished").exists()
    assert not list(out.glob("*.partial"))
    for name in FILES[keep]:
        assert (out / name).read_bytes() == (alone / name).read_bytes(), name


class StoppedError(Exception):
    """What ends a sweep in these tests."""


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that sweeps ``tmp_path / "out"`` and stops when so many shards are on disk.

    Counted where shards are saved, in one thread: how many were evaluated by then depends on the machine.
    """
    save = Checkpoint.save

    def interrupt(keep: str = "all", size: int = SIZE, after: int = 4, **changes: Any) -> Path:
        saved = []

        def stopping(self: Checkpoint, evaluated: ShardResult, accumulator: Accumulator) -> None:
            if len(saved) == after:
                raise StoppedError
            save(self, evaluated, accumulator)
            saved.append(evaluated.shard.number)

        with monkeypatch.context() as patch, pytest.raises(StoppedError):
            patch.setattr(Checkpoint, "save", stopping)
            sweep(trivial(size, tmp_path, **changes), tmp_path / "out", keep=keep)
        assert len(counted(tmp_path / "out")) == after
        return tmp_path / "out"

    return interrupt


def test_a_stopped_sweep_is_not_overwritten_unasked(interrupted, tmp_path: Path) -> None:
    out = interrupted()
    assert {path.name for path in out.iterdir()} == {"unfinished"}
    with pytest.raises(InputError, match=r"interrupted after \d+ portions; give --resume"):
        sweep(trivial(SIZE, tmp_path), out)
    result = sweep(trivial(SIZE, tmp_path), out, resume=True)
    assert result.n == len(result.points()) == SIZE
    assert any("went on after" in note for note in result.notes)


def test_a_sweep_ends_with_what_its_progress_raises(tmp_path: Path) -> None:
    """Told from the threads that evaluate: it comes out where the sweep was called, and what is there can go on."""

    def progress(count: int) -> None:
        if count:
            raise StoppedError

    with pytest.raises(StoppedError):
        sweep(trivial(SIZE, tmp_path), tmp_path / "out", progress)
    assert sweep(trivial(SIZE, tmp_path), tmp_path / "out", resume=True).n == SIZE


def test_files_of_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "theirs.partial").touch()
    (out / "points.parquet.partial").touch()
    leftovers(out)
    assert [path.name for path in out.iterdir()] == ["theirs.partial"]
    (out / "unfinished").mkdir()
    (out / "unfinished" / "novel.txt").touch()
    with pytest.raises(InputError, match=r"unfinished/novel\.txt: is no file of an interrupted sweep"):
        Checkpoint(out, {"digest": ""}, resume=False)
    assert (out / "unfinished" / "novel.txt").exists()


def test_a_folder_of_nothing_does_not_stay(tmp_path: Path) -> None:
    with results_in(tmp_path / "new" / "er"):
        assert (tmp_path / "new" / "er").is_dir()
    with results_in(tmp_path / "kept") as folder:
        (folder / "run.json").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_resuming_where_nothing_was_begun_says_so(tmp_path: Path) -> None:
    asked = sweep(trivial(SIZE, tmp_path), tmp_path / "asked", resume=True)
    assert [note for note in asked.notes if "nothing finished was there" in note]
    assert not any("nothing finished" in note for note in sweep(trivial(SIZE, tmp_path), tmp_path / "new").notes)


def test_a_finished_sweep_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = sweep(trivial(SIZE, tmp_path), tmp_path / "out", resume=True)
    monkeypatch.setattr(SpaceEvaluator, "shard", None)
    again = sweep(trivial(SIZE, tmp_path), tmp_path / "out", resume=True)
    assert again.summary() == result.summary()


CHANGES = {
    "space": ({"axes": {"sm_count": [1, 2], "l2_mib": [50]}}, ["[axes] sm_count", "[axes] dram_bandwidth_gbs"]),
    "constraint": ({"constraints": []}, ["constraints of the space"]),
    "base": ({"gpu": {"tdp_w": 500}}, ["base GPU (tdp_w)"]),
    "model": ({"timing": "mdm"}, ["timing of the space", "the timing model"]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_another_space_is_refused_with_what_differs(kind: str, interrupted, tmp_path: Path) -> None:
    change, parts = CHANGES[kind]
    out = interrupted()
    with pytest.raises(InputError) as refusal:
        sweep(trivial(SIZE, tmp_path, **change), out, resume=True, keep="all")
    assert all(part in str(refusal.value) for part in parts), refusal.value
    assert len(counted(out)) > 0


def test_another_version_or_way_is_refused(interrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = interrupted()
    with pytest.raises(InputError, match=r"--keep \(all, now front\)"):
        sweep(trivial(SIZE, tmp_path), out, resume=True, keep="front")
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks(2 * CHUNK))
    with pytest.raises(InputError, match=r"designs a chunk \(512, now 1024\)"):
        sweep(trivial(SIZE, tmp_path), out, resume=True)
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    monkeypatch.setattr("dse.__version__", "99.0")
    with pytest.raises(InputError, match=r"version of dse \(.*, now 99\.0\)"):
        sweep(trivial(SIZE, tmp_path), out, resume=True)


def test_another_gemm_in_the_same_file_is_refused(interrupted, tmp_path: Path) -> None:
    out = interrupted()
    space = trivial(SIZE, tmp_path)
    (tmp_path / "one.csv").write_text("m,n,k,dtype\n4096,4096,2048,bf16\n")
    changed = replace(space, workloads=_reloaded(tmp_path))
    with pytest.raises(InputError, match="the kernels of its workloads"):
        sweep(changed, out, resume=True)


def _reloaded(folder: Path):
    content = {
        "base": "h100_sxm",
        "axes": {"sm_count": [1]},
        "workloads": {"gemm": "one.csv"},
        "objectives": [{"value": "die_mm2", "goal": "min"}],
    }
    return space_from_mapping(content, "here", "other", folder).workloads


def test_damaged_rows_are_evaluated_again(interrupted, tmp_path: Path) -> None:
    whole = sweep(trivial(SIZE, tmp_path), tmp_path / "whole")
    out = interrupted()
    first, second, *_ = sorted((out / "unfinished").glob("*.arrow"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    second.unlink()
    result = sweep(trivial(SIZE, tmp_path), out, resume=True)
    assert [note.split("; ")[1] for note in result.notes if first.name in note or second.name in note] == [
        "its designs were evaluated again"
    ] * 2
    assert whole.folder is not None
    for name in FILES["all"]:
        assert (out / name).read_bytes() == (whole.folder / name).read_bytes()


def test_a_damaged_state_is_reported_and_everything_evaluated(interrupted, tmp_path: Path) -> None:
    out = interrupted("front")
    state = out / "unfinished" / "state.npz"
    assert zipfile.is_zipfile(state)
    state.write_bytes(state.read_bytes()[:-100])
    result = sweep(trivial(SIZE, tmp_path), out, resume=True, keep="front")
    assert any("was damaged; every portion was evaluated again" in note for note in result.notes)
    assert result.n == SIZE
    (out / "unfinished").mkdir()
    (out / "unfinished" / "sweep.json").write_text("{")
    with pytest.raises(InputError, match=r"sweep\.json: cannot be read"):
        sweep(trivial(SIZE, tmp_path), out, resume=True, keep="front")


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the size of files stands for the disk: the rows of a shard fit it, the whole table does not."""
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # in one piece: the limit also holds for whatever else the process writes
    monkeypatch.setattr("dse.grid.checkpoint.Checkpoint.save_state", _few_states())
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
        with pytest.raises(InputError, match=r"the disk is full.*make room, then give --resume"):
            sweep(trivial(SIZE, tmp_path), out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert {path.name for path in out.iterdir()} == {"unfinished"}
    monkeypatch.undo()
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    result = sweep(trivial(SIZE, tmp_path), out, resume=True)
    assert result.n == len(result.points()) == SIZE


def _few_states():
    """A state is larger than this test's files may be: keep none, so that only rows and tables are written."""
    return lambda self, accumulator: None


STEPS = {
    "rows are written": "dse.grid.checkpoint.write_bytes",
    "the front is compared": "dse.base.pareto_filter.pareto_mask",
    "statistics are merged": "dse.grid.statistics.AxisStatistics.merge",
    "the shard is counted": "zlib.crc32",
    "the state is taken": "dse.grid.statistics.AxisStatistics.arrays",
}


@cache
def left_alone(folder: Path) -> SweepResult:
    """A sweep that nothing ends."""
    folder.mkdir()
    return sweep(trivial(SIZE, folder), folder / "out")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("step", STEPS)
def test_what_ends_a_sweep_at_any_step_counts_no_shard_twice(
    step: str,
    error: BaseException,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, out = left_alone(tmp_path_factory.getbasetemp() / "left_alone"), tmp_path / "out"
    assert whole.folder is not None
    with monkeypatch.context() as patch:
        patch.setattr(STEPS[step], _failing(pkgutil.resolve_name(STEPS[step]), error))
        with pytest.raises((InputError, KeyboardInterrupt)):
            sweep(trivial(SIZE, tmp_path), out)
    assert (out / "unfinished").exists()
    result = sweep(trivial(SIZE, tmp_path), out, resume=True)
    assert result.n_feasible == whole.n_feasible
    assert result.infeasible == whole.infeasible
    assert result.axis_effects.equals(whole.axis_effects)
    for name in FILES["all"]:
        assert (out / name).read_bytes() == (whole.folder / name).read_bytes()


def _failing(function: Any, error: BaseException):
    """Return the function, which raises ``error`` at its seventh call, where no OSError having done its work."""
    calls = count(1)

    def fail(*given: Any, **named: Any) -> Any:
        if next(calls) != 7:
            return function(*given, **named)
        if not isinstance(error, OSError):
            function(*given, **named)
        raise error

    return fail


def test_another_sweeps_state_is_not_taken_over(interrupted, tmp_path: Path) -> None:
    state = (interrupted() / "unfinished" / "state.npz").read_bytes()
    (tmp_path / "out").rename(tmp_path / "first")
    other = {"constraints": ["die_mm2 <= 600"]}
    whole = sweep(trivial(SIZE, tmp_path, **other), tmp_path / "whole")
    for change in (other, {}):  # of another space, and of the same one begun apart
        out = interrupted(**change)
        (out / "unfinished" / "state.npz").write_bytes(state)
        result = sweep(trivial(SIZE, tmp_path, **change), out, resume=True)
        assert [note for note in result.notes if "state.npz: was of another sweep" in note]
        if change:
            assert result.infeasible == whole.infeasible
            assert (out / "pareto.parquet").read_bytes() == (tmp_path / "whole" / "pareto.parquet").read_bytes()
        out.rename(tmp_path / f"done {len(change)}")


def test_ctrl_c_tells_how_to_go_on(tmp_path: Path, write_space, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    from dse.cli import run_command
    from tests.conftest import SMALL

    def interrupt(self: SpaceEvaluator, *rest: object) -> ShardResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(SpaceEvaluator, "shard", interrupt)
    assert run_command(["sweep", str(write_space(SMALL)), "--no-page", "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "dse: interrupted; the same command with --resume goes on\n"
