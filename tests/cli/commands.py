"""Commands as tests run them."""

import pytest

from dse.cli import run_command


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must be refused and return its sentence."""
    assert run_command(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dse: ")
    assert captured.err.count("\n") == 1
    return captured.err
