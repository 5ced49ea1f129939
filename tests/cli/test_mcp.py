"""The command that serves agents is there, and says what to install where it cannot."""

import pytest

from dse.cli import run_command


def test_its_help_names_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["mcp", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "check, run, compare, explain, sweep and search" in said
