"""The command that predicts large systems from small ones: what it prints, writes and refuses."""

import pytest

from dse.cli import run_command
from tests.scaling.tables import TABLE, written


def test_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_command(["scale", str(written(tmp_path, TABLE))]) == 0
    out = capsys.readouterr().out
    for part in ("flat", "recursion_ratio", "skipped: ", "1.6 times faster", "scale-t.html"):
        assert part in out
    assert (tmp_path / "scale-t.html").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--small", "8"], "give both sizes"),
        (["--small", "16", "--large", "8"], "the smaller first"),
        (["--small", "5", "--large", "7"], "nothing can be predicted: no ipc at 5 or 7"),
        (["--small", "16", "--large", "48"], "nothing can be predicted"),
    ],
)
def test_refusals_write_nothing(tmp_path, capsys, arguments, sentence):
    page = tmp_path / "p.html"
    assert run_command(["scale", str(written(tmp_path, TABLE)), "-o", str(page), *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.out == ""
    assert not page.exists()


def test_the_page_is_not_written_over_the_table(tmp_path, capsys):
    path = written(tmp_path, TABLE)
    before = path.read_bytes()
    assert run_command(["scale", str(path), "-o", str(path)]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert path.read_bytes() == before
