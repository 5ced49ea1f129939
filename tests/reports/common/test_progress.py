"""Progress where stderr is no terminal: silent, but for what takes minutes; and nothing on stdout."""

import pytest

from dse.reports.common.progress import counting, doing


def test_a_bar_is_silent_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with counting(100, "100 designs [of many]") as progress:
        progress(60)
        progress(40)
    assert capsys.readouterr() == ("", "")


def test_what_takes_minutes_is_stated_in_a_log_and_the_rest_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with doing("drawing the page"):
        pass
    assert capsys.readouterr() == ("", "")
    with doing("refining [the front]", minutes=True):
        pass
    assert capsys.readouterr() == ("", "refining [the front]\n")


def test_an_error_passes_through_both() -> None:
    with pytest.raises(ZeroDivisionError), counting(3, "rows"), doing("reading"):
        raise ZeroDivisionError


def test_a_terminal_sees_a_bar_with_its_words(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with counting(100, "100 designs") as progress:
        progress(50)
    out, err = capsys.readouterr()
    assert out == ""
    assert "100 designs" in err and "50" in err
