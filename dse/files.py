"""A file is written whole or not at all."""

from contextlib import suppress
from pathlib import Path

from dse.errors import InputError

PARTIAL = ".partial"
"""Ends the name of a file until it is whole."""


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file that gets its name only when it is whole; raises InputError where it cannot be written.

    A pipe or a device (/dev/stdout) is written as it is: a file in its place would not be what was meant.
    """
    path = Path(path)
    special = path.exists() and not path.is_file()
    place = path if special else path.resolve()  # of a link: what it names
    partial = place if special else place.with_name(place.name + PARTIAL)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", newline="\n")
        if not special:
            partial.replace(place)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another path") from None
    finally:
        if not special:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
