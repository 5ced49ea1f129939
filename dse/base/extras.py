"""Packages that few commands need and an installation may lack: a sentence of what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from dse.base.errors import InputError


@contextmanager
def extra(name: str, who: str) -> Iterator[None]:
    """Import packages of an extra inside: raises InputError, which names it, where one of them is not installed.

    ``who``: what needs them, as the beginning of the sentence.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise InputError(f"{who} needs {package}, which is not installed; pip install 'gpu-dse[{name}]'") from None
