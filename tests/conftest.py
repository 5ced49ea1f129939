"""Shared fixtures: a small space that every test of spaces and sweeps can vary; compiled programs of a session."""

import copy
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import install_import_hook

from dse.base.kept import user_cache
from tests import not_run

SHAPES_CHECKED = ("dse.hardware.gpu", "dse.power.power", "dse.timing.timing")
"""Modules of the records and of the models' contracts, whose shapes are checked in every call of one worker."""

if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":  # it takes a tenth of the time of tests
    install_import_hook(SHAPES_CHECKED, "beartype.beartype")  # before the conftest of a folder imports them

SHORTEST_COMPILATION = 0.05
"""Programs that took at least this long to compile [s] are kept for the session."""


LONGEST = Path(__file__).parent / "slow_cases.txt"
"""Cases that take longest, by their names, beside tests that are marked where they stand."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled programs in a folder of this session, away from the user's own cache.

    The workers of a session and the processes that tests start inherit it, so that a program is compiled once. Garbage
    is collected seldom: each collection walks all programs that were ever traced.
    """
    config.pluginmanager.register(not_run)
    _hear_signals()
    gc.set_threshold(100_000, 50, 100)
    if not hasattr(config, "workerinput"):
        _keep_programs(config)


@pytest.hookimpl(tryfirst=True)  # before the cases to run are chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow the cases that :data:`LONGEST` lists: some of a test, where the others are enough each time."""
    listed = {line.strip() for line in LONGEST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _store_closed() -> Iterator[None]:
    """Close the store that a command opened in this process: a test may change the code of the next programs."""
    yield
    user_cache.STORE.close()


def _hear_signals() -> None:
    """Let interruptions through where the run was started with them ignored: in the background, or under nohup."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def _keep_programs(config: pytest.Config) -> None:
    folder = tempfile.mkdtemp(prefix="gpu-dse-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["XDG_CACHE_HOME"] = folder  # where dse.base.kept.between_commands.cache_compilations keeps them
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "gpu-dse" / "compiled")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = str(SHORTEST_COMPILATION)


SMALL: dict[str, Any] = {
    "name": "small",
    "question": "Which mix is best?",
    "base": "h100_sxm",
    "axes": {
        "tensor_fma_bf16": [256, 512, 1024],
        "sm_count": {"from": 96, "to": 144, "step": 12},
        "dram_bandwidth_gbs": [1675, 3350, 6700],
    },
    "links": {"tensor_fma_fp16": "tensor_fma_bf16", "tensor_fma_fp8": "2 * tensor_fma_bf16"},
    "workloads": {
        "prefill": {"use": "gpt2_xl:phase=prefill,batch=1,prompt=512"},
        "decode": "gpt2_xl:phase=decode,batch=8,context=512",
    },
    "objectives": [
        {"value": "prefill.ttft_ms", "goal": "min"},
        {"value": "decode.tbt_ms", "goal": "min"},
        {"value": "die_mm2", "goal": "min"},
    ],
}


@pytest.fixture
def in_64_bits() -> Iterator[None]:
    """Reference answers are in double precision."""
    import jax  # after pytest_configure has named the folder of its cache

    with jax.enable_x64(True):
        yield


@pytest.fixture
def small() -> dict[str, Any]:
    """A space of 45 designs as a mapping, free to be changed."""
    return copy.deepcopy(SMALL)


@pytest.fixture
def quick(small: dict[str, Any]) -> dict[str, Any]:
    """One workload and the model that compiles soonest: what a command says and writes does not depend on them."""
    prefill = {"prefill": small["workloads"]["prefill"]}
    return small | {"timing": "roofline", "workloads": prefill, "objectives": small["objectives"][::2]}


def toml_text(content: dict[str, Any]) -> str:
    """Write a space mapping as TOML."""
    lines = [f"{key} = {_value(value)}" for key, value in content.items() if not _is_table(value)]
    for key, value in content.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *(f"{name} = {_value(item)}" for name, item in value.items())]
        elif _is_table(value):
            for item in value:
                lines += [f"[[{key}]]", *(f"{name} = {_value(v)}" for name, v in item.items())]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


@pytest.fixture
def write_space(tmp_path: Path):
    """Write a space mapping to a file and return its path."""

    def write(content: dict[str, Any], name: str = "space.toml") -> Path:
        path = tmp_path / name
        path.write_text(toml_text(content), encoding="utf-8")
        return path

    return write
