"""What a command prints to, whatever that is: a terminal of few characters, or nothing at all."""

import codecs
import os
import sys
import unicodedata
from io import TextIOWrapper
from pathlib import Path

PLAIN = {"−": "-", "–": "-", "×": "x", "·": "*", "±": "+-", "µ": "u", "≤": "<=", "≥": ">=", "→": "->"}
"""What stands for characters that an encoding lacks; others lose their accents, or are a question mark."""


def open_to_any_text() -> None:
    """Let stdout and stderr take every text: a sign that their encoding lacks is no reason to end without an answer.

    A stream that the caller has closed goes nowhere; Python would print what is for stderr to stdout.
    """
    codecs.register_error("dse.plain", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (as long as the process)
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="dse.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_stand_in, error.object[error.start : error.end])), error.end


def _stand_in(character: str) -> str:
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return PLAIN.get(character, bare or "?")
