"""What a command prints to: encodings that lack signs, and streams that are closed."""

import io
import sys

import pytest

from dse.cli.streams import PLAIN, open_to_any_text


def printed(text: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a stdout of an encoding takes of a text."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    open_to_any_text()
    print(text, end="", flush=True)
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_signs_that_an_encoding_lacks_have_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed("5 µs ± 2 → 3×", "ascii", monkeypatch) == "5 us +- 2 -> 3x"
    assert printed("Größe, Kåre", "ascii", monkeypatch) == "Gro?e, Kare"
    assert printed("漢字", "ascii", monkeypatch) == "??"


def test_what_an_encoding_has_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(PLAIN) + "Größe 漢"
    assert printed(text, "utf-8", monkeypatch) == text
    assert printed("5 µs ≤ 3×", "latin-1", monkeypatch) == "5 µs <= 3×"


def test_a_closed_stream_takes_everything_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    open_to_any_text()
    with sys.stderr:
        print("a warning", file=sys.stderr)
    assert capsys.readouterr().out == ""
