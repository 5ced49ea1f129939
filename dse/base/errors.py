"""The errors a user can meet; all derive from one root."""

from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

INTERRUPTED = 130
"""Exit code of an interrupted command: what a shell makes of one that Ctrl-C ended, 128 and the number of SIGINT."""


class DseError(Exception):
    """Root of every error that this package raises on purpose."""


class InputError(DseError):
    """Something the user gave cannot be used; the sentence names the file, the key, the value and the remedy.

    The command line prints it and exits with code 2.
    """


def accepted(name: str, candidates: Iterable[str], most: int = 12) -> str:
    """Return the end of an error sentence: the nearest accepted names, or all of them when they are few."""
    names = sorted(candidates)
    near = get_close_matches(str(name), names, n=3, cutoff=0.6)  # what is no text has none near
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    shown = ", ".join(names[:most])
    return f"accepted are: {shown}" + (f", ... ({len(names)} in all)" if len(names) > most else "")


LONGEST = 80
"""Most characters of a value that an error sentence repeats."""


def shown(value: Any) -> str:
    """Return a value as an error sentence repeats it: its repr in one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def expect(name: str, value: Any, kinds: Any, remedy: str) -> None:
    """Raise InputError where the argument ``name`` is of none of ``kinds`` (as isinstance takes them).

    ``remedy`` says what would be accepted, as "give the path of a folder".
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name} = {shown(value)} is not accepted; {remedy}")


def path_of(name: str, value: Any) -> Path:
    """Return the path of a file or a folder that the argument ``name`` gives; raises InputError where it is none."""
    expect(name, value, (str, PathLike), "give a path")
    return Path(value)


def listed(name: str, values: Any, remedy: str) -> list[Any]:
    """Return the values of the argument ``name``; raises InputError at one alone, such as a text, which has letters."""
    if isinstance(values, str | bytes | PathLike) or not isinstance(values, Iterable):
        raise InputError(f"{name} = {shown(values)} is not accepted; {remedy}")
    return list(values)


def paths_of(name: str, values: Any) -> list[Path]:
    """Return the paths that the argument ``name`` gives, one or several; raises InputError where it gives none."""
    alone = [values] if isinstance(values, str | PathLike) else listed(name, values, "give a path, or a list of paths")
    return [path_of(name, value) for value in alone]


def expect_one_of(name: str, value: Any, candidates: Iterable[str]) -> None:
    """Raise InputError where the argument ``name`` is none of the names that are accepted."""
    names = list(candidates)
    expect(name, value, str, accepted("", names))
    if value not in names:
        raise InputError(f"{name} = {value!r} is not accepted; {accepted(value, names)}")
