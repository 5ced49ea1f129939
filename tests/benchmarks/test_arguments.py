"""Each benchmark tells what it takes, and refuses what it does not know before it measures anything."""

import importlib
import sys
from pathlib import Path

import pytest

import benchmarks

MODULES = Path(benchmarks.__path__[0]).glob("*.py")
PROGRAMS = sorted(path.stem for path in MODULES if "\ndef main()" in path.read_text(encoding="utf-8"))

programs = pytest.mark.parametrize("name", PROGRAMS)


def ended(name, words, monkeypatch):
    """The exit code of a benchmark."""
    monkeypatch.setattr(sys, "argv", [name, *words])
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"benchmarks.{name}").main()
    return end.value.code


def test_the_benchmarks_of_the_readme_are_there():
    text = Path(benchmarks.__path__[0], "README.md").read_text(encoding="utf-8")
    assert sorted(name for name in PROGRAMS if f"`python -m benchmarks.{name}`" in text) == PROGRAMS
    assert len(PROGRAMS) >= 9


@programs
def test_help_is_the_text_of_the_module(name, monkeypatch, capsys):
    assert ended(name, ["--help"], monkeypatch) == 0
    told = capsys.readouterr().out
    assert f"usage: python -m benchmarks.{name} " in told
    assert importlib.import_module(f"benchmarks.{name}").__doc__.splitlines()[0] in told
    assert "--one" not in told  # of its own processes


@programs
@pytest.mark.parametrize("words", [["--jsn"], ["--js"], ["--json", "nothing"]])
def test_an_unknown_word_is_refused(name, words, monkeypatch, capsys):
    assert ended(name, words, monkeypatch) == 2
    told = capsys.readouterr()
    assert words[-1] in told.err and told.out == ""


def test_an_unknown_space_of_a_search_is_refused(monkeypatch, capsys):
    assert ended("search", ["--spaces", "main,fin"], monkeypatch) == 2
    assert "fin unknown; there are main, fine, wide" in capsys.readouterr().err
