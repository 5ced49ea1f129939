"""The user's cache folder: TOML files kept parsed, the same as parsed anew, whatever the folder holds."""

import json
import tomllib

import pytest

from dse.base.errors import InputError
from dse.base.user_cache import cache_folder, read_tomls
from dse.timing.calibration import implementation_calibration, shipped_implementations

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
