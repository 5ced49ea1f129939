"""A file is written whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from dse.base.errors import InputError

PARTIAL = ".partial"
"""Ends the name of a file until it is whole."""


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file that gets its name only when it is whole; raises InputError where it cannot be written.

    A pipe or a device (/dev/stdout) is written as it is: a file in its place would not be what was meant.
    """
    path = Path(path)
    special = path.exists() and not path.is_file()
    try:
        if special:
            path.write_bytes(text.encode())
            return
        place = path.resolve()  # of a link: what it names
        place.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(place, text.encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another path") from None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its name, then rename it; nothing stays where it cannot be written."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        partial.write_bytes(content)
        rename(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def rename(partial: Path, path: Path) -> None:
    """Give a file that is written its name, when the disk holds it: a power cut leaves the old one or the new one."""
    file = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    partial.replace(path)
