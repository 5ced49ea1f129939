"""A user's text file, decoded: one door for all readers, whatever program wrote it."""

import codecs
import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dse.base.errors import InputError, shown

MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte-order marks, as Notepad and PowerShell write them, and what they stand for."""

DOCUMENT, TABLE = 16_000_000, 2_000_000_000
"""Most bytes of a document that a person writes (TOML, JSON), and of a table."""

FIRST = 64
"""Bytes by which UTF-16 without a mark is known: every other one is zero in Western text."""

FOREIGN = "dse.latin"
"""How bytes that are no UTF-8 are read where anything goes: as Latin-1."""


def _latin(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(FOREIGN, _latin)


def read_text(path: Path, most: int = DOCUMENT, any_bytes: bool = False) -> str:
    """Return a file's text without its byte-order mark: UTF-8, or UTF-16 and UTF-32 by their marks.

    With ``any_bytes`` what is no UTF-8 is read as Latin-1. Raises InputError where it is no file, is longer than
    ``most`` bytes, or is no text.
    """
    path = Path(path)
    raw = _bytes(path, most)
    encoding = _encoding(raw)
    try:
        text = raw.decode(encoding, FOREIGN if any_bytes else "strict").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is no text in {encoding.upper()}: byte {error.start + 1} is {raw[error.start]:#04x}; save it as "
            "UTF-8"
        ) from None
    if "\0" in text and not any_bytes:
        raise InputError(f"{path}: is no text: it holds a zero byte; give a text file in UTF-8")
    return text


def _bytes(path: Path, most: int) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is a device or a pipe; give a file")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name that holds a zero byte
        raise InputError(f"{shown(str(path))}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > most:
        raise InputError(f"{path}: is longer than {most / 1e6:,.0f} MB; give a smaller file")
    return raw


def _encoding(raw: bytes) -> str:
    marked = next((name for mark, name in MARKS if raw.startswith(mark)), None)
    if marked:
        return marked
    start = raw[:FIRST]
    even, odd = start[::2], start[1::2]
    if odd and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if even and not any(even) and all(odd) else "utf-8"


def there_is(path: Path, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """Return whether there is such a path, or one of a ``kind`` (Path.is_dir); what can name none is none."""
    try:
        return kind(path)
    except (OSError, ValueError):  # longer than any name, or with a zero byte
        return False


@contextmanager
def parsing(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a library's parser raises on a user's text into InputError: ``path`` is no ``what``."""
    try:
        yield
    except (ValueError, csv.Error) as error:  # every decoder's errors are of these kinds
        raise InputError(f"{path}: is not valid {what}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError(f"{path}: is not valid {what}: it is nested too deep") from None


def printable(text: str) -> str:
    """Return a text that a terminal takes as text: control characters and line breaks as a person would write them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
