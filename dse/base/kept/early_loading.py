"""Executables loaded while a command still imports: those that the last command of its name loaded.

Imports keep one core busy for a second, and an executable takes half a second to load, on another. A thread loads what
the store holds under the keys that the last command noted. A program is asked for by its own key, as ever: what was
loaded for nothing is not run.
"""

import hashlib
import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import jax
from jax.experimental import serialize_executable

from dse.base.kept.machine import is_one_cpu, machine
from dse.base.kept.user_cache import STORE, NotKeptError


class Written(NamedTuple):
    """A program as it is kept: an executable of so many arrays, and what is made of those that it returns (pickled)."""

    executable: bytes
    arguments: int
    returned: int
    result: bytes


def deserialised(written: Written) -> Any:
    """Return the executable of a program; raises what the runtime does where it is not its own."""
    given = jax.tree.structure(((0,) * written.arguments, {}))
    returned = jax.tree.structure([0] * written.returned)
    return serialize_executable.deserialize_and_load(written.executable, given, returned)


class EarlyLoading:
    """The executables of this process that are loaded before they are asked for; none until it begins."""

    def __init__(self) -> None:
        self._note = ""
        self._used: list[str] = []
        self._loading: dict[str, Future[Any]] = {}

    def begin(self, command: str) -> None:
        """Load, on a thread, what the last command of this name used, and note what this one uses."""
        self._note, self._used, self._loading = "", [], {}
        with suppress(Exception):  # whatever it is: it saves time and nothing else
            if STORE.package is None or not is_one_cpu():
                return
            self._note = hashlib.sha256(repr(("loaded", command, STORE.package, machine())).encode()).hexdigest()
            pool = ThreadPoolExecutor(1)
            for key in (STORE.read(self._note) or b"").decode().split():
                self._loading[key] = pool.submit(_loaded, key)
            pool.shutdown(wait=False)

    def taken(self, key: str) -> Any:
        """Return the executable under a key, None where it was not loaded early; raises what its loading does."""
        early = self._loading.get(key)
        if self._note and key not in self._used:
            self._used.append(key)
            if early is None:
                with suppress(NotKeptError, OSError):
                    STORE.write(self._note, " ".join(self._used).encode())
        return early and early.result()


def _loaded(key: str) -> Any:
    content = STORE.read(key)
    return deserialised(pickle.loads(content)) if content else None


EARLY = EarlyLoading()
"""This process's."""
