"""The user's cache folder: what can be made anew from the package's own files, kept from one command to the next.

Texts are kept as JSON beside their hash. In the store lie programs and pickled records, which run code as they are
loaded: its folder is the user's alone (0700, files 0600), and one that others can write to is not used. What is in it
is found by a hash of all that decides it, every file of the package among it.
"""

import hashlib
import json
import os
import pickle
import stat
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import dse
from dse.base.atomic_files import write_bytes
from dse.base.kept.machine import versions
from dse.base.text_file import parsing, read_text

T = TypeVar("T")

MOST_BYTES = 256 * 2**20
"""What the store holds at most [B]: some hundred programs. What was not loaded for longest is removed."""

QUIET_NS = 2 * 10**9
"""How long before a process began nothing of the package may have changed [ns]: its code is then that of its files,
even where these tell time in seconds."""


def cache_folder() -> Path | None:
    """Return the folder in which this package keeps things for a user, None where the user has no home."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # as in a container
        return None
    return root / "gpu-dse"


def read_tomls(kind: str, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the contents of the package's TOML files by name, parsed once for all commands.

    They are kept as one JSON document, called ``kind`` and a hash of every file: Python's own TOML parser reads a
    megabyte in half a second, its JSON parser in 20 ms. Files that changed have another hash. Where nothing can be
    kept, each command parses for itself. Raises InputError where a file is no TOML.
    """
    texts = {name: read_text(path) for name, path in paths.items()}
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
    folder = cache_folder()
    kept = folder and folder / f"{kind}-{digest}.json"
    if kept and (found := _kept(kept)) is not None and found.keys() == texts.keys():
        return found
    contents = {}
    for name, text in texts.items():
        with parsing(paths[name], "TOML"):
            contents[name] = tomllib.loads(text)
    if kept:
        _keep(kept, f"{kind}-*.json", contents)
    return contents


def _kept(path: Path) -> dict[str, Any] | None:
    """A document as it was kept, None where it is not there or is not whole."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else None
    return None


def _keep(path: Path, former: str, contents: dict[str, Any]) -> None:
    """Keep a document in place of those of other versions; one with dates, which JSON lacks, is not kept."""
    with suppress(OSError, TypeError):
        document = json.dumps(contents).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(former):
            old.unlink(missing_ok=True)
        write_bytes(path, document)


class NotKeptError(Exception):
    """What no key describes whole, or what the store must not hold."""


class Store:
    """A folder of bytes under keys; it holds nothing, and takes nothing, until it is opened."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._package = ""

    def open(self, folder: Path) -> None:
        """Keep things in a folder from now on; in none where that is not safe."""
        self.close()
        with suppress(NotKeptError, OSError):
            self._package = package_digest()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _expect_private(folder.lstat(), stat.S_ISDIR)
            self._folder = folder

    def close(self) -> None:
        """Keep nothing, and take nothing."""
        self._folder = None

    @property
    def package(self) -> str | None:
        """The digest of the package when the folder was opened, None without a folder."""
        return self._package if self._folder else None

    def read(self, key: str) -> bytes | None:
        """Return what is kept under a key, None where nothing whole is."""
        if self._folder is None:
            return None
        path = self._folder / key
        with suppress(OSError, NotKeptError), path.open("rb") as file:
            _expect_private(os.fstat(file.fileno()), stat.S_ISREG)
            digest, content = file.read(32), file.read()
            if digest == hashlib.sha256(content).digest():
                os.utime(path)
                return content
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep something under a key; NotKeptError where the package changed since the folder was opened."""
        if self._folder is None or package_digest() != self._package:
            raise NotKeptError
        file, partial = tempfile.mkstemp(dir=self._folder)  # of mode 0600
        try:
            with os.fdopen(file, "wb") as written:
                written.write(hashlib.sha256(content).digest() + content)
            Path(partial).replace(self._folder / key)
        finally:
            Path(partial).unlink(missing_ok=True)
        _remove_old(self._folder)

    def made(self, what: str, make: Callable[[], T]) -> T:
        """Return what ``make`` makes of the package's files and of nothing else, as it is kept under its name."""
        if self._folder is None:
            return make()
        key = hashlib.sha256(repr((what, self._package, versions())).encode()).hexdigest()
        content = self.read(key)
        with suppress(Exception):  # whatever a class makes of what it does not know
            return pickle.loads(content or b"")
        made = make()
        with suppress(Exception):  # ... or refuses to write
            self.write(key, pickle.dumps(made))
        return made

    def remove(self, key: str) -> None:
        """Keep nothing under a key."""
        if self._folder is not None:
            (self._folder / key).unlink(missing_ok=True)


STORE = Store()
"""This process's; commands open it (:func:`dse.base.kept.between_commands.cache_compilations`)."""


def _expect_private(state: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    """Raise NotKeptError for what others can write to, or own; where no system says who can, too."""
    mine = hasattr(os, "getuid") and state.st_uid == os.getuid()
    if not mine or not is_kind(state.st_mode) or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotKeptError


def _remove_old(folder: Path) -> None:
    """Remove what was not loaded for longest, so that MOST_BYTES are left at most."""
    found = sorted(((path.stat(), path) for path in folder.iterdir()), key=lambda one: -one[0].st_mtime_ns)
    total = 0
    for state, path in found:
        total += state.st_size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)


def package_digest() -> str:
    """Return a digest of every file of this package: its place, size, and times of change.

    Of a file with the size and the time of another version, ``st_ctime`` differs, which no program sets. Raises
    NotKeptError where a file changed since this process began to import the package, or shortly before.
    """
    root = Path(dse.__file__).parent
    digest, newest = hashlib.sha256(str(root).encode()), 0
    folders = [str(root)]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                    continue
                state = entry.stat()
                times = state.st_mtime_ns, state.st_ctime_ns
                digest.update(repr((entry.path, state.st_size, state.st_ino, *times)).encode())
                newest = max(newest, *times)
    if newest > dse._IMPORTED_NS - QUIET_NS:
        raise NotKeptError
    return digest.hexdigest()
