"""The worked example of CONTRIBUTING.md is true: its files, put where it says, pass the tests that it names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_import_direction import ORDER

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
"""Paths and texts of the files that the example adds."""


def test_the_rooms_stand_in_the_order_that_the_tests_hold():
    assert re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE) == list(ORDER)


def test_the_example_adds_a_table_an_operator_and_a_test():
    assert [Path(path).suffix for path, _ in FILES] == [".csv", ".py", ".py"]
    assert [path for path, _ in FILES if (ROOT / path).exists()] == []


@pytest.mark.slow
def test_who_follows_the_example_ends_with_green_tests(tmp_path):
    for name in ("dse", "tests", "spaces"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, text in FILES:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (named,) = re.findall(r"^    \.venv/bin/pytest (tests/.*)$", TEXT, re.MULTILINE)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named.split()]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout
