"""Storages that many workers share: the gRPC proxy, and PostgreSQL where a server is given."""

import json
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import optuna
import pytest
from optuna.study import StudyDirection

from dse.base.compilation import threads
from dse.base.errors import InputError
from dse.pareto import search as search_module
from dse.pareto.batch_model import BatchModel
from dse.pareto.optuna_storage import open_storage
from dse.pareto.search import search
from dse.space.space import load_space
from tests.conftest import SMALL
from tests.pareto.test_search import FINER, same_designs

POSTGRES = "DSE_TEST_POSTGRES"
"""Environment variable with the URL of an empty database, as postgresql+psycopg2://user@host/name."""

SERVE = """
import sys
from optuna.storages import run_grpc_proxy_server
from dse.pareto.optuna_storage import open_storage
run_grpc_proxy_server(open_storage(sys.argv[1]), host="localhost", port=int(sys.argv[2]))
"""


DIE_LOCKED = """
import os, sys
from dse.pareto.optuna_storage import open_storage
open_storage(sys.argv[1])._backend._lock.acquire()
os._exit(9)
"""


def test_a_lock_that_a_killed_search_left_is_broken(tmp_path, monkeypatch):
    """Of a journal with a relative path, too: the kind of lock that Optuna takes by itself is waited for for ever."""
    monkeypatch.chdir(tmp_path)
    url = "journal:folder/search.journal"
    open_storage(url).create_new_study([StudyDirection.MINIMIZE], "kept")
    assert subprocess.run([sys.executable, "-c", DIE_LOCKED, url], check=False).returncode == 9
    with threads(1) as pool:
        again = pool.submit(open_storage, url).result(timeout=60)
    assert [study.study_name for study in again.get_all_studies()] == ["kept"]


def work(space: Path, url: str, out: Path, sampler: str, evaluations: int) -> subprocess.Popen:
    """Start a worker in a process of its own."""
    command = [sys.executable, "-m", "dse.cli", "search", str(space), "--storage", url, "--sampler", sampler]
    command += ["--evaluations", str(evaluations), "-o", str(out), "--json"]
    return subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def two_workers(space: Path, url: str, folder: Path, sampler: str, evaluations: int) -> list[dict]:
    """Run two workers at one search and return what each reports."""
    workers = [work(space, url, folder / name, sampler, evaluations) for name in ("one", "two")]
    reports = []
    for worker in workers:
        out, err = worker.communicate(timeout=240)
        assert worker.returncode == 0, err
        reports.append(json.loads(out)["search"])
    return reports


def check_shared(reports: list[dict], url: str, evaluations: int) -> None:
    """Assert that both ended with what both had done, and that no trial was lost or left."""
    counts = [report["evaluations"] for report in reports]
    assert min(counts) >= evaluations
    study = optuna.load_study(study_name="small, nsga2, seed 0", storage=open_storage(url))
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    assert set(states) == {optuna.trial.TrialState.COMPLETE}
    assert max(counts) <= len(states) < evaluations + 2 * 50  # each may have had a batch in hand
    assert all(report["hypervolume"] > 0 for report in reports)


@pytest.fixture
def server(tmp_path):
    """URL of a gRPC proxy before a journal."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", SERVE, f"journal:{tmp_path}/shared.journal", str(port)]
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("localhost", port)) == 0:
                break
        time.sleep(0.1)
    yield f"grpc://localhost:{port}"
    process.terminate()
    process.wait()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("grpc") is None, reason="install grpcio")
def test_two_workers_share_a_search_through_the_grpc_proxy(server, write_space, tmp_path):
    path = write_space(SMALL | {"axes": FINER})
    check_shared(two_workers(path, server, tmp_path, "nsga2", 400), server, 400)
    local = two_workers(path, server, tmp_path, "local", 400)
    assert all(report["evaluations"] >= 400 for report in local)


@pytest.mark.slow
@pytest.mark.skipif(POSTGRES not in os.environ, reason=f"name a PostgreSQL database in {POSTGRES}")
def test_a_search_is_kept_and_shared_in_postgresql(write_space, tmp_path, monkeypatch):
    url, path = os.environ[POSTGRES], write_space(SMALL | {"axes": FINER})
    check_shared(two_workers(path, url, tmp_path, "nsga2", 100), url, 100)
    space = load_space(path)
    model = BatchModel(space)
    monkeypatch.setattr(search_module, "BatchModel", lambda space, expected=None: model)
    search(space, evaluations=30, seed=3, storage=url, sampler="random")
    resumed = search(space, evaluations=60, seed=3, storage=url, sampler="random")
    assert resumed.restored == resumed.repeated == 30
    assert same_designs(search(space, evaluations=60, seed=3, sampler="random"), resumed)


def test_a_server_that_is_not_there_is_a_sentence(write_space, tmp_path):
    path = write_space(SMALL)
    url = "postgresql+psycopg2://nobody@localhost:1/none"
    worker = work(path, url, tmp_path / "out", "nsga2", 10)
    _, err = worker.communicate(timeout=120)
    assert worker.returncode == 2
    assert f"--storage {url}: cannot be opened" in err


def test_a_refusal_does_not_show_the_password() -> None:
    with pytest.raises(InputError) as refused:
        open_storage("postgresql://user:secret@127.0.0.1:1/name")
    assert "secret" not in str(refused.value) and "user:***@" in str(refused.value)
