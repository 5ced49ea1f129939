"""The errors a user can meet; all derive from one root."""

from collections.abc import Iterable
from difflib import get_close_matches


class DseError(Exception):
    """Root of every error that this package raises on purpose."""


class InputError(DseError):
    """Something the user gave cannot be used; the sentence names the file, the key, the value and the remedy.

    The command line prints it and exits with code 2.
    """


def accepted(name: str, candidates: Iterable[str], most: int = 12) -> str:
    """Return the end of an error sentence: the nearest accepted names, or all of them when they are few."""
    names = sorted(candidates)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    shown = ", ".join(names[:most])
    return f"accepted are: {shown}" + (f", ... ({len(names)} in all)" if len(names) > most else "")
