"""Shapes of records and of calls of models are checked while tests run, in one worker of several."""

import os
import subprocess
import sys
from pathlib import Path


def test_shapes_are_checked() -> None:
    of_no_worker = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", str(Path(__file__).with_name("checked_shapes.py"))]
    ended = subprocess.run(command, env=of_no_worker, capture_output=True, text=True, check=False)
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr
