"""The search: every sampler by name, budgets, storages, what is refused, and what a kill leaves."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import optuna
import pyarrow.parquet as pq
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dse.base.errors import InputError
from dse.base.pareto_filter import Box, pareto_mask
from dse.cli import run_command
from dse.evaluate import by_workload
from dse.grid.store import TableWriter
from dse.grid.sweep import sweep
from dse.pareto import search as search_module
from dse.pareto.batch_model import BatchModel
from dse.pareto.optuna_storage import open_storage
from dse.pareto.samplers import SAMPLERS
from dse.pareto.search import search
from dse.pareto.search_state import SearchState
from dse.space.space import space_from_mapping
from tests.conftest import SMALL

FINER = {
    "tensor_fma_bf16": {"from": 128, "to": 1024, "step": 64},
    "sm_count": {"from": 72, "to": 168, "step": 8},
    "dram_bandwidth_gbs": [1675, 2010, 2680, 3350, 4020, 5360, 6700],
    "l2_mib": [30, 50, 80],
}
NAMES = [o["value"] for o in SMALL["objectives"]]
COLUMNS = ["tensor_fma_bf16", "sm_count", "dram_bandwidth_gbs", "l2_mib"]


@pytest.fixture(scope="module")
def space():
    """4,095 designs, of which a constraint refuses some."""
    quick = {"timing": "roofline"}  # what is searched does not depend on the model
    return space_from_mapping(SMALL | quick | {"axes": FINER, "constraints": ["die_mm2 <= 900"]}, "finer", "finer")


@pytest.fixture(scope="module")
def truth(space):
    """The front of the whole grid, and its box."""
    front = sweep(space).front[NAMES].to_numpy(float)
    return front, Box.of(front)


@pytest.fixture
def compiled_once(space, monkeypatch, request):
    """All searches of this module share a compiled model: tens of thousands of designs."""
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    if not hasattr(request.module, "_model"):
        request.module._model = BatchModel(space)
    monkeypatch.setattr(search_module, "BatchModel", lambda space, expected=None: request.module._model)


def same_designs(first, second):
    """Whether two searches evaluated the same designs in the same order and found the same."""
    return first.result.points().equals(second.result.points()) and first.result.front.equals(second.result.front)


def test_the_hypervolume_reported_is_that_of_the_front(space):
    """It is taken as a search grows by a tenth, and once more for what is told."""
    x = np.linspace(1.0, 2.0, 20)
    line = np.stack([x, 3.0 - x, np.ones(20)], axis=1)
    state = SearchState(space)
    state.add(np.arange(20), np.arange(20), line, np.zeros(20))
    before = state.hypervolume
    best = np.asarray([[1.2, 1.2, 1.0]])
    state.add(np.asarray([20]), np.asarray([20]), best, np.zeros(1))
    assert state.hypervolume == before
    volume = state.measured()
    assert volume == state.hypervolume == pytest.approx(Box.of(line).hypervolume(np.concatenate([line, best])))
    assert volume > 1.05 * before


@pytest.mark.slow
def test_a_tenth_of_a_small_grid_holds_nearly_all_of_its_hypervolume(space, truth, compiled_once):
    front, box = truth
    share = []
    for seed in range(3):
        answer = search(space, evaluations=410, seed=seed)
        assert answer.evaluations == 410
        share.append(box.hypervolume(answer.result.front[NAMES].to_numpy(float)) / box.hypervolume(front))
    assert min(share) > 0.97, share  # eight seeds lie between 0.989 and 0.999


@pytest.mark.slow
def test_the_default_sampler_finds_everything_there_is(space, truth, compiled_once):
    answer = search(space, evaluations=10_000)
    assert answer.evaluations == answer.result.n == space.size
    assert answer.result.n_feasible < space.size
    assert sum(answer.result.infeasible.values()) == space.size - answer.result.n_feasible
    # The sweep's program takes larger chunks: its last bits differ, and may decide between designs that tie.
    ours, theirs = answer.result.front[NAMES].to_numpy(float), truth[0]
    for some, others in ((ours, theirs), (theirs, ours)):
        reached = (others[None] <= some[:, None] * (1 + 1e-5)).all(axis=2).any(axis=1)
        assert reached.all(), some[~reached]


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "gp"])
def test_a_sampler_gives_a_front_of_what_it_evaluated(space, compiled_once, sampler):
    answer = search(space, evaluations=120, sampler=sampler, seed=5)
    assert answer.evaluations == 120
    points = answer.result.points()
    assert len(points) == answer.result.n <= 120
    assert not points.duplicated(COLUMNS).any()
    feasible = points[points.feasible]
    best = feasible[pareto_mask(feasible[NAMES].to_numpy(float))]
    assert sorted(map(tuple, best[COLUMNS].to_numpy())) == sorted(map(tuple, answer.result.front[COLUMNS].to_numpy()))
    assert same_designs(answer, search(space, evaluations=120, sampler=sampler, seed=5))
    assert not same_designs(answer, search(space, evaluations=120, sampler=sampler, seed=6))


def test_a_batch_of_evaluated_designs_alone_adds_nothing(space, compiled_once):
    points = search_module._Points(search_module.BatchModel(space), None)
    for _ in range(2):
        points.add(points._model(np.asarray([7, 11, 7])))
    points.finish()
    assert points.count == sum(map(len, points.tables)) == 2


@pytest.mark.parametrize("sampler", ["tpe", *(pytest.param(s, marks=pytest.mark.slow) for s in ("nsga2", "qmc"))])
def test_a_sampler_that_knows_every_design_goes_on_to_its_evaluations(sampler):
    two = SMALL | {"axes": {"sm_count": [96, 132]}, "timing": "roofline", "links": {}}
    answer = search(space_from_mapping(two, "two", "two"), evaluations=60, sampler=sampler)
    assert (answer.evaluations, answer.result.n, len(answer.result.points())) == (60, 2, 2)


JOURNAL, DATABASE = "journal:{}/study.journal", "sqlite:///{}/study.db"


@pytest.mark.parametrize(
    ("sampler", "storage"),
    [
        ("local", JOURNAL),
        ("nsga2", JOURNAL),
        ("tpe", JOURNAL),
        ("local", DATABASE),
        *(pytest.param(sampler, DATABASE, marks=pytest.mark.slow) for sampler in ("nsga2", "tpe")),
    ],
)
def test_a_search_that_was_interrupted_goes_on_as_if_not(space, compiled_once, tmp_path, sampler, storage):
    whole = search(space, evaluations=160, sampler=sampler, seed=1)
    url = storage.format(tmp_path)

    def interrupt(count, members, volume):
        if count >= 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(space, evaluations=160, sampler=sampler, seed=1, storage=url, progress=interrupt)
    resumed = search(space, evaluations=160, sampler=sampler, seed=1, storage=url)
    assert 70 <= resumed.restored < 160
    assert resumed.evaluations == 160
    assert same_designs(whole, resumed)


@pytest.mark.parametrize("sampler", ["qmc", "nsga2", "random"])
@pytest.mark.parametrize("written", [0, 2, 4 * 70 + 2])
def test_a_search_that_dies_while_it_asks_goes_on_as_if_not(
    space, compiled_once, tmp_path, monkeypatch, sampler, written
):
    """A trial of which only some parameters were written is asked for again, with the same design."""
    whole = search(space, evaluations=100, sampler=sampler, seed=1)
    url, write, remaining = JOURNAL.format(tmp_path), JournalStorage.set_trial_param, iter(range(written))

    def die(*arguments):
        if next(remaining, None) is None:
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(JournalStorage, "set_trial_param", die)
    with pytest.raises(KeyboardInterrupt):
        search(space, evaluations=100, sampler=sampler, seed=1, storage=url)
    monkeypatch.setattr(JournalStorage, "set_trial_param", write)
    resumed = search(space, evaluations=100, sampler=sampler, seed=1, storage=url)
    assert resumed.evaluations == 100
    assert same_designs(whole, resumed)


def test_a_full_disk_is_a_sentence_and_loses_nothing(space, compiled_once, tmp_path, monkeypatch):
    """Wherever it is met: in the storage, in the table, in the record."""
    whole = search(space, tmp_path / "whole", evaluations=100, sampler="nsga2", seed=1)
    out, full = tmp_path / "out", OSError(errno.ENOSPC, "No space left on device")
    writers = {JournalFileBackend: "append_logs", TableWriter: "write", search_module: "write_record"}
    for owner, name in writers.items():
        write, remaining = getattr(owner, name), iter(range(300 if owner is JournalFileBackend else 0))

        def fail(*arguments, write=write, remaining=remaining):
            if next(remaining, None) is None:
                raise full
            write(*arguments)

        with monkeypatch.context() as patch, pytest.raises(InputError) as refusal:
            patch.setattr(owner, name, fail)
            search(space, out, evaluations=100, sampler="nsga2", seed=1)
        reason = "the disk is full or its quota used up; make room, then give the same command, which goes on"
        assert str(refusal.value) == f"{out}: {reason}"
        assert not list(out.glob("*.partial"))
    answer = search(space, out, evaluations=100, sampler="nsga2", seed=1)
    assert same_designs(whole, answer)


def test_a_second_search_into_a_folder_is_refused_while_one_runs(space, compiled_once, tmp_path):
    refusals = []

    def progress(*_):
        if not refusals:
            for run in (search, sweep):
                with pytest.raises(InputError, match="another sweep or search is writing there") as refusal:
                    run(space, tmp_path)
                refusals.append(refusal)

    assert search(space, tmp_path, evaluations=50, progress=progress).evaluations == 50
    assert len(refusals) == 2


def test_dashboards_find_the_front_in_the_storage(space, compiled_once, tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    answer = search(space, evaluations=160, seed=1, storage=url)
    search(space, evaluations=160, seed=1, storage=url)  # publishes nothing twice
    study = optuna.load_study(study_name="small, local, seed 1", storage=url)
    assert study.metric_names == NAMES
    values = np.asarray([trial.values for trial in study.best_trials])
    front = answer.result.front[NAMES].to_numpy(float)
    assert len(study.trials) == len(front)
    assert np.array_equal(values[np.lexsort(values.T)], front[np.lexsort(front.T)])
    first = study.trials[0]
    assert set(first.params) == {"tensor_fma_bf16", "sm_count", "dram_bandwidth_gbs", "l2_mib"}
    generations = optuna.load_study(study_name="small, local, seed 1, generations", storage=url)
    volumes = [trial.value for trial in generations.trials]
    assert volumes == sorted(volumes)
    assert volumes[-1] == answer.hypervolume


def test_workers_at_one_search_share_it_and_repeat_little(space, compiled_once, tmp_path):
    url = f"journal:{tmp_path}/study.journal"
    second = []

    def join(count, members, volume):
        if count and not second:
            second.append(None)
            # As another machine's worker, that this one is not gone: its running trials are left alone.
            study = optuna.load_study(study_name="small, nsga2, seed 1", storage=open_storage(url))
            study.set_user_attr("worker elsewhere:1", datetime.now(UTC).isoformat())
            second[0] = search(space, evaluations=100, sampler="nsga2", seed=1, storage=url)

    first = search(space, evaluations=300, sampler="nsga2", seed=1, storage=url, progress=join)
    assert second[0].evaluations == 100
    assert second[0].restored == 50
    assert first.evaluations == 300
    assert first.result.n > 200


def test_more_evaluations_go_on_from_the_storage(space, compiled_once, tmp_path):
    url = f"journal:{tmp_path}/study.journal"
    first = search(space, evaluations=160, seed=1, storage=url)
    second = search(space, evaluations=320, seed=1, storage=url)
    assert second.restored == 160
    assert second.evaluations == second.result.n == 320
    assert second.hypervolume >= first.hypervolume


def test_a_search_is_shown_by_its_evaluations_and_its_front(space, compiled_once):
    answer = search(space, evaluations=20)
    first, second, third = repr(answer).splitlines()
    assert first.startswith(f"SearchResult(sampler local, seed 0: 20 evaluations of {space.size:,} designs, ")
    assert second == f"  {str(answer.result).splitlines()[0]}"
    assert third.endswith("mm2))")
    assert "<th>decode.tbt_ms</th>" in answer._repr_html_()


def test_seconds_end_a_search(space, compiled_once):
    answer = search(space, seconds=0.5, sampler="random")
    assert 0.5 <= answer.seconds < 5
    assert answer.evaluations >= 1


def test_another_space_on_the_same_storage_is_refused(space, compiled_once, tmp_path):
    url = f"journal:{tmp_path}/study.journal"
    search(space, evaluations=20, storage=url)
    other = space_from_mapping(SMALL, "small", "small")
    with pytest.raises(InputError, match="of other inputs or of another version"):
        search(other, evaluations=20, storage=url)


def test_another_version_of_the_model_on_the_same_storage_is_refused(space, compiled_once, tmp_path, monkeypatch):
    url = f"journal:{tmp_path}/study.journal"
    search(space, evaluations=20, storage=url)
    monkeypatch.setattr("dse.pareto.study.model_version", lambda: "0123abcd")
    with pytest.raises(InputError, match=r"another version \(model [0-9a-f]{8}, now 0123abcd\); give another storage"):
        search(space, evaluations=20, storage=url)


def test_a_half_written_last_line_of_a_journal_is_mended(space, compiled_once, tmp_path):
    path = tmp_path / "study.journal"
    whole = search(space, evaluations=100, storage=f"journal:{tmp_path}/whole.journal")
    search(space, evaluations=100, storage=f"journal:{path}")
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if b'"trial_id":3' in line)
    path.write_bytes(b"".join(lines[:cut]) + lines[cut][:40])
    resumed = search(space, evaluations=100, storage=f"journal:{path}")
    assert 0 < resumed.restored < 100
    assert same_designs(whole, resumed)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sampler", "nsga"], "did you mean 'nsga"),
        (["--evaluations", "0"], "give a whole number of at least 1"),
        (["--seconds", "0"], "give a number above 0"),
        (["--seed", "-1"], "give a whole number of at least 0"),
        (["--storage", "journal"], "is not a storage; give journal:PATH"),
        (["--storage", "sqlite:////no/such/folder/x.db"], "unable to open database file"),
        (["--storage", "grpc://somewhere"], "give grpc://host:port"),
    ],
)
def test_bad_input_is_a_sentence(small, write_space, tmp_path, capsys, arguments, sentence):
    assert run_command(["search", str(write_space(small)), "-o", str(tmp_path / "out"), *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.startswith("dse: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"evaluations": 2.5}, r"--evaluations 2\.5 is not accepted; give a whole number of at least 1"),
        ({"seed": "a"}, "--seed 'a' is not accepted; give a whole number of at least 0"),
        ({"seconds": "a"}, "--seconds 'a' is not accepted; give a number above 0"),
        ({"seconds": float("nan")}, "--seconds nan is not accepted"),
        ({"out": 5}, "out = 5 is not accepted; give the path of a folder"),
        ({"seed": True}, "--seed True is not accepted; give a whole number of at least 0"),
        ({"seed": -1}, "--seed -1 is not accepted; give a whole number of at least 0"),
        ({"space": 7}, "space = 7 is not accepted; give a path, the name of a shipped space, or a loaded space"),
        ({"sampler": 5}, "sampler = 5 is not accepted; accepted are: gp, local, "),
        ({"storage": 5}, "storage = 5 is not accepted; give journal:PATH"),
        ({"storage": ""}, "--storage '' is not a storage; give journal:PATH"),
        ({"refine": "yes"}, "refine = 'yes' is not accepted; give True or False"),
        ({"progress": "yes"}, "progress = 'yes' is not accepted; give a function"),
    ],
)
def test_options_of_another_type_are_refused(space, option, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        search(**{"space": space, "evaluations": 20} | option)


def test_a_file_that_is_no_journal_is_refused_and_left_alone(small, write_space, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\nmore")
    arguments = ["--storage", f"journal:{path}", "-o", str(tmp_path / "out")]
    assert run_command(["search", str(write_space(small)), *arguments]) == 2
    assert "cannot be opened" in capsys.readouterr().err
    assert path.read_text() == "my notes\nmore"


def test_a_journal_damaged_in_its_middle_says_in_which_line(tmp_path):
    path = tmp_path / "search.journal"
    entry = '{"op_code": 0, "worker_id": "one", "study_name": "two", "directions": [1]}\n'
    path.write_text(f"{entry}{entry[:20]}\n{entry}")
    with pytest.raises(
        InputError, match=r"cannot be opened: line 2 is damaged; keep the lines before it alone, give an"
    ):
        open_storage(f"journal:{path}")
    assert len(path.read_text().splitlines()) == 3


def test_the_command_writes_tables_and_a_record(write_space, tmp_path, capsys):
    # One workload and the roofline compile in seconds.
    quick = {"timing": "roofline", "objectives": SMALL["objectives"][1:]}
    quick["workloads"] = {"decode": SMALL["workloads"]["decode"]}
    out, path = tmp_path / "out", write_space(SMALL | {"axes": FINER} | quick)
    assert run_command(["search", str(path), "--evaluations", "200", "-o", str(out), "--json", "--no-page"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["search"]["evaluations"] == document["n"] == 200
    assert document["search"]["size"] == 4095
    assert {p.name for p in out.iterdir()} == {
        "points.parquet",
        "pareto.parquet",
        "run.json",
        "search.journal",
    }
    record = json.loads((out / "run.json").read_text())
    assert record["search"]["sampler"] == "local"
    assert record["n_pareto"] == len(document["pareto"]) == pq.read_metadata(out / "pareto.parquet").num_rows
    assert pq.read_metadata(out / "points.parquet").num_rows == 200
    assert run_command(["search", str(path), "--evaluations", "200", "-o", str(out), "--no-page"]) == 0
    assert "200 of them from the storage" in " ".join(capsys.readouterr().out.split())


def start(path: Path, out: Path, evaluations: int, sampler: str) -> subprocess.Popen:
    """Start a search in a process of its own."""
    command = [sys.executable, "-m", "dse.cli", "search", str(path), "-o", str(out), "--sampler", sampler]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, "--evaluations", str(evaluations)], env=dict(os.environ), **quiet)


def completed(journal: Path) -> int:
    """Trials that a journal tells as complete."""
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    return sum(b'"op_code":6' in line and b'"state":1' in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "evaluations"),
    [
        ("local", 20_000),
        ("nsga2", 1500),
        ("random", 400),
        ("qmc", 400),
        pytest.param("gp", 14, marks=pytest.mark.skipif(find_spec("torch") is None, reason="install torch")),
    ],
)
def test_a_killed_search_loses_no_finished_trial_and_ends_as_if_not_killed(write_space, tmp_path, sampler, evaluations):
    path = write_space(SMALL | {"axes": FINER | {"tensor_clock_mhz": {"from": 1030, "to": 1830, "step": 50}}})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(path, whole, evaluations, sampler).wait() == 0
    journal, full = killed / "search.journal", completed(whole / "search.journal")
    finished = 0
    for part in (0.3, 0.6):
        process = start(path, killed, evaluations, sampler)
        while process.poll() is None and completed(journal) <= part * full:
            time.sleep(0.002)
        assert process.poll() is None, process.stderr and process.stderr.read()
        process.send_signal(signal.SIGKILL)
        process.wait()
        complete = completed(journal)
        assert complete > finished
        finished = complete
    process = start(path, killed, evaluations, sampler)
    assert process.wait() == 0
    record = json.loads((killed / "run.json").read_text())
    assert 0 < record["timing"]["restored"] < evaluations
    # Results are not in the storage: what was finished is evaluated once more for the table, and said to be.
    assert record["timing"]["repeated"] == record["timing"]["restored"]
    assert record["search"] == json.loads((whole / "run.json").read_text())["search"]
    for name in ("points.parquet", "pareto.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert completed(journal) == full
