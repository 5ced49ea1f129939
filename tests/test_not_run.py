"""A test run ends with one line that says what did not run, with workers and without."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.not_run import line


def test_reasons_are_counted_the_most_first():
    assert line(Counter({"install a": 1, "name b": 3}), 2) == (
        "not run: 3: name b; 1: install a; 2 slow ones: pytest -m slow"
    )
    assert line(Counter(), 0) == ""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_run_says_what_it_left_out(workers):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GPU_DSE", "PYTEST"))}
    files = ["tests/against/test_scale_model.py", "tests/against/test_board_power.py"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, *files]
    root = Path(__file__).parents[1]
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    (said,) = (text for text in run.stdout.splitlines() if text.startswith("not run: "))
    assert "GPU_DSE_SCALE_MODEL" in said
    assert said.endswith("; 4 slow ones: pytest -m slow")


def test_every_case_named_slow_exists():
    root = Path(__file__).parents[1]
    names = (root / "tests" / "slow_cases.txt").read_text(encoding="utf-8").splitlines()
    for name in (n for n in names if not n.startswith("#")):
        file, function = name.split("[")[0].split("::")[:2]
        assert f"def {function}(" in (root / file).read_text(encoding="utf-8"), name
