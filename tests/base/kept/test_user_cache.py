"""The user's cache folder: TOML files kept parsed, the same as parsed anew, whatever the folder holds."""

import hashlib
import json
import time
import tomllib

import jax
import numpy as np
import pytest

import dse
from dse.base.errors import InputError
from dse.base.kept.user_cache import STORE, cache_folder, read_tomls
from dse.timing import calibration
from dse.timing.calibration import implementation_calibration, load_timing_calibration, shipped_implementations

DOCUMENT = 'name = "one"\nnumbers = [1, 2.5, 1e9, -0.0, inf]\nrows = [{ a = true }, { b = "\\u00b5" }]\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gpu-dse"


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(DOCUMENT, encoding="utf-8")
    return {"one": path}


def test_a_second_reading_takes_what_was_kept(home, files):
    wanted = {"one": tomllib.loads(DOCUMENT)}
    assert read_tomls("kind", files) == wanted
    (kept,) = home.iterdir()
    assert read_tomls("kind", files) == wanted
    kept.write_text(json.dumps({"one": {"name": "kept"}}))
    assert read_tomls("kind", files) == {"one": {"name": "kept"}}


def test_a_changed_file_is_parsed_anew_and_the_former_is_gone(home, files):
    read_tomls("kind", files)
    files["one"].write_text('name = "two"')
    assert read_tomls("kind", files) == {"one": {"name": "two"}}
    assert len(list(home.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"other": {}}', "\ud800"])
def test_what_is_not_whole_is_made_anew(home, files, content):
    wanted = read_tomls("kind", files)
    (kept,) = home.iterdir()
    kept.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert read_tomls("kind", files) == wanted


def test_without_a_folder_every_command_parses(tmp_path, files, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read_tomls("kind", files) == {"one": tomllib.loads(DOCUMENT)}
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert cache_folder() is None
    assert read_tomls("kind", files) == {"one": tomllib.loads(DOCUMENT)}


def no_home():
    raise RuntimeError


def test_a_date_is_kept_by_nobody(home, files):
    files["one"].write_text("day = 2026-01-02")
    assert read_tomls("kind", files)["one"]["day"].year == 2026
    assert not home.exists()


def test_what_is_no_toml_is_told_with_its_file(home, files):
    files["one"].write_text("name = ")
    with pytest.raises(InputError, match=r"one\.toml: is not valid TOML"):
        read_tomls("kind", files)


def test_shipped_calibrations_are_those_of_their_files(home):
    paths = shipped_implementations()
    for _ in range(2):  # parsed, then as kept
        assert read_tomls("implementations", paths) == {n: tomllib.loads(p.read_text()) for n, p in paths.items()}
    assert implementation_calibration("matrix_early").gpus == tuple(
        tomllib.loads(paths["matrix_early"].read_text())["gpus"]
    )


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(dse, "_IMPORTED_NS", time.time_ns() + 3600 * 10**9)
    STORE.open(tmp_path / "store")
    return tmp_path / "store"


def test_what_is_made_of_the_package_is_made_once(store):
    made = []

    def make():
        made.append(1)
        return {"made": len(made)}

    assert [STORE.made("record", make) for _ in range(2)] == [{"made": 1}] * 2
    assert STORE.made("other", make) == {"made": 2}
    for path in store.iterdir():
        content = b"no pickle"
        path.write_bytes(hashlib.sha256(content).digest() + content)
    assert STORE.made("record", make) == {"made": 3}
    assert STORE.made("record", make) == {"made": 3}
    STORE.close()
    assert STORE.made("record", make) == {"made": 4}


def test_what_cannot_be_written_is_made(store):
    made = STORE.made("local", lambda: lambda: 4)  # no pickle
    assert made() == 4
    store.rmdir()
    assert STORE.made("record", lambda: 5) == 5


@pytest.mark.parametrize("name", ["shared", "h100_sxm"])
def test_a_kept_calibration_is_the_one_that_was_read(store, monkeypatch, name):
    read = load_timing_calibration(name)
    monkeypatch.setattr(calibration, "_read", None)
    kept = load_timing_calibration(name)
    assert kept is not read
    assert kept.error_quantiles == read.error_quantiles
    assert (kept.name, kept.gpus, kept.own, kept.like, kept.values) == (
        read.name, read.gpus, read.own, read.like, read.values,
    )  # fmt: skip
    assert kept.fits.keys() == read.fits.keys()
    assert jax.tree.structure(kept.model) == jax.tree.structure(read.model)
    for one, other in zip(jax.tree.leaves(kept.model), jax.tree.leaves(read.model), strict=True):
        assert (type(one), one.dtype) == (type(other), other.dtype)
        np.testing.assert_array_equal(one, other)
