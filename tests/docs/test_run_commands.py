"""The script that runs the pages' commands refuses pages that there are not, instead of running nothing."""

import sys

import pytest

from tests.docs import run_commands


def test_an_unknown_page_is_refused(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["run_commands", "sweeps.md", "swepes.md"])
    with pytest.raises(SystemExit) as end:
        run_commands.main()
    said = capsys.readouterr()
    assert end.value.code == 2 and "no page is called swepes.md" in said.err and said.out == ""
