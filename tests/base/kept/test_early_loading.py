"""Executables loaded beside a command's imports: those that the last command of its name used, and the same answers."""

import hashlib

import numpy as np
import pytest

from dse.base.kept import early_loading
from dse.base.kept.early_loading import EARLY
from dse.base.kept.user_cache import STORE
from tests.base.kept.test_kept_programs import MODEL, X, answer, equal, folder, package  # noqa: F401 (fixtures)


@pytest.fixture
def loaded(monkeypatch):
    """The keys that are loaded early."""
    keys = []
    load = early_loading._loaded
    monkeypatch.setattr(early_loading, "_loaded", lambda key: keys.append(key) or load(key))
    yield keys
    EARLY.begin("none")


def command(name, *rows):
    """What a command of a name answers, for its first rows, and whether it traced."""
    EARLY.begin(name)
    return [answer(MODEL, X[:count], True) for count in rows]


def test_a_command_loads_at_once_what_the_last_of_its_name_used(folder, loaded):  # noqa: F811
    ((wanted, traced),) = command("run", 5)
    assert traced
    assert not loaded
    ((found, traced),) = command("run", 5)
    assert not traced
    assert len(loaded) == 1
    assert equal(found, wanted)
    command("explain", 5)
    assert len(loaded) == 1  # another command's
    command("run", 5, 7)
    command("run", 7)
    assert len(loaded) == 4
    command("run", 9)
    assert [np.size(one.values) for (one, _), _ in command("run", 5)] == [5]
    assert len(loaded) == 7  # of the command before: 9 alone


def test_what_is_loaded_for_nothing_changes_nothing(folder, loaded):  # noqa: F811
    command("run", 5)
    ((found, traced),) = command("run", 7)
    assert traced
    assert len(loaded) == 1
    assert equal(found, command("other", 7)[0][0])


@pytest.mark.parametrize("content", [b"", b"no pickle"])
def test_what_does_not_load_early_is_traced(folder, loaded, content):  # noqa: F811
    ((wanted, _),) = command("run", 5)
    (key,) = STORE.read(EARLY._note).decode().split()
    (folder / key).write_bytes(hashlib.sha256(content).digest() + content)
    ((found, traced),) = command("run", 5)
    assert loaded == [key]
    assert traced
    assert equal(found, wanted)


def test_without_a_folder_nothing_is_loaded(loaded):
    assert [traced for _, traced in command("run", 5) + command("run", 5)] == [True, True]
    assert not loaded


def test_what_fails_as_it_begins_is_passed_over(folder, loaded, monkeypatch):  # noqa: F811
    monkeypatch.setattr(early_loading, "is_one_cpu", lambda: 1 // 0)
    assert [traced for _, traced in command("run", 5) + command("run", 5)] == [True, False]
    assert not loaded
