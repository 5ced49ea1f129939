"""A sweep that has not ended: what it has finished, on disk, so that it can go on where it was interrupted.

The folder ``unfinished`` beside the results holds ``sweep.json`` (what is swept: :func:`identity`), ``state.npz`` (the
fold of the finished portions, and which they are) and, where every design is kept, a file of rows a portion. Every file
gets its name only when it is whole, the rows of a portion before the state that counts it: whatever ends the process,
the state tells the truth. State and ``sweep.json`` bear the mark of one sweep, so that no other's state is taken for
it. The folder goes when the results are whole.
"""

import io
import json
import re
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

import dse
from dse.base.atomic_files import PARTIAL, write_bytes
from dse.base.errors import InputError
from dse.evaluate.batching import float_type
from dse.grid.accumulator import Fold
from dse.grid.machine import machine, unlike
from dse.grid.shard import Portion, PortionResult
from dse.grid.store import RESULTS, write_json
from dse.space.space import Space

FOLDER = "unfinished"
FORMAT = 4

OURS = re.compile(r"sweep\.json|state\.npz|\d{6,}\.arrow")
"""Names of the files in it."""

EVERY = 2.0
"""Seconds between two states on disk: what is lost at most, besides the portions in evaluation."""

GO_ON = "give --resume to go on"


def identity(space: Space, keep: str, chunk: int, portion: int) -> dict[str, Any]:
    """Return what must be the same for a sweep to go on: the inputs, the version, the size of its parts, what is kept.

    ``chunk`` and ``portion``: designs.
    """
    return {
        "format": FORMAT,
        "dse": dse.__version__,
        "keep": keep,
        "floats": float_type().__name__,
        "chunk": chunk,
        "portion": portion,
        "space": space.content,
        "base": space.base.numbers(),
        **space.fingerprints,
        "digest": space.digest,
        "machine": machine(),
    }


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in words what differs between two identities, apart from the processor and the device."""
    words = {
        "dse": "version of dse",
        "keep": "--keep",
        "floats": "type of numbers",
        "chunk": "designs a chunk",
        "portion": "designs a portion",
        "format": "format",
    }
    said = [f"{word} ({before.get(key)}, now {now[key]})" for key, word in words.items() if before.get(key) != now[key]]
    for key, value in now["machine"].items():
        old = before["machine"].get(key)
        if key not in ("processor", "device", "dse") and old != value:
            said.append(f"{key} ({old}, now {value})")
    said += _tables("space", before["space"], now["space"])
    moved = [name for name, value in now["base"].items() if before["base"].get(name) != value]
    said += [f"base GPU ({', '.join(moved)})"] if moved else []
    said += [f"the {key} model" for key in ("timing", "power") if before.get(key) != now[key]]
    if not said and before["digest"] != now["digest"]:
        said.append("the kernels of its workloads")
    return said


def _tables(what: str, before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    said = []
    for key in dict.fromkeys([*now, *before]):
        old, new = before.get(key), json.loads(json.dumps(now.get(key)))
        if isinstance(old, dict) and isinstance(new, dict):
            said += [f"[{key}] {name}" for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)]
        elif old != new:
            said.append(f"{key} of the {what}")
    return said


class InMemory:
    """The twin of :class:`Unfinished` for a sweep without a folder: nothing outlives the process."""

    def __init__(self) -> None:
        self._rows: dict[int, bytes] = {}

    def restore(self, fold: Fold) -> set[int]:
        """Return the numbers of the finished portions: none."""
        return set()

    def save(self, evaluated: PortionResult, fold: Fold) -> None:
        """Take a portion into ``fold`` and keep its rows."""
        fold.merge(evaluated.fold)
        if evaluated.rows is not None:
            self._rows[evaluated.portion.number] = evaluated.rows

    def close(self, fold: Fold, interrupted: bool) -> None:
        """Nothing is kept."""

    def rows(self, portion: Portion, again: Callable[[Portion], bytes]) -> bytes:
        """Return the rows of a finished portion."""
        return self._rows[portion.number]


class Unfinished:
    """The folder of a sweep in progress; ``notes`` tell what was found there."""

    def __init__(self, folder: Path, which: dict[str, Any], resume: bool) -> None:
        self.folder, self.notes = folder / FOLDER, []
        self._identity, self._mark = which, f"{which['digest']} {uuid4().hex}"
        self._checks: dict[int, int] = {}
        self._whole = True  # the fold holds the portions of _checks, and no part of another one
        self._saved, self._asked = 0.0, resume
        self._resuming = (self.folder / "sweep.json").exists()
        if self._resuming and not resume and (count := self._finished()):
            raise InputError(
                f"{folder}: holds a sweep that was interrupted after {count:,} portions; {GO_ON}, or remove "
                f"{self.folder} to begin anew"
            )
        if self._resuming and resume:
            self._check()
        else:
            self._begin()

    def _finished(self) -> int:
        state = self._state()
        return 0 if state is None else len(state["done"])

    def _check(self) -> None:
        """Refuse to go on with another sweep than was begun."""
        path = self.folder / "sweep.json"
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            said, self._mark = differences(before, self._identity), before.get("mark")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path}: cannot be read; remove {self.folder} to begin anew") from None
        if said:
            raise InputError(
                f"{self.folder}: is of another sweep, which differs in {'; '.join(said)}; sweep that one, or remove "
                f"{self.folder} to begin anew"
            )
        other = unlike(before["machine"], self._identity["machine"])
        if other:
            self.notes.append(
                f"went on with {', '.join(other)}: equal to one machine's result within about 1e-6, not to the bit"
            )

    def _begin(self) -> None:
        self._refuse_others()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write_json(self.folder / "sweep.json", self._identity | {"mark": self._mark})
        self._resuming = False

    def _refuse_others(self) -> None:
        """Raise InputError where the folder to be emptied holds what no sweep has put there."""
        for path in sorted(self.folder.glob("*")):
            if not OURS.fullmatch(path.name.removesuffix(PARTIAL)):
                raise InputError(
                    f"{path}: is no file of an interrupted sweep, and {self.folder} would be emptied; move it away, or "
                    "give another folder with -o"
                )

    def _state(self) -> dict[str, np.ndarray] | None:
        """Return the saved state, None where there is none or it is damaged."""
        try:
            with np.load(self.folder / "state.npz") as file:
                return dict(file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
            self.notes.append(f"{self.folder / 'state.npz'}: was damaged; every portion was evaluated again")
            return None

    def restore(self, fold: Fold) -> set[int]:
        """Take what was finished into ``fold`` and return the numbers of the finished portions."""
        self._saved = time.monotonic()
        state = self._state() if self._resuming else None
        if state is not None and str(state["mark"]) != self._mark:
            self.notes.append(f"{self.folder / 'state.npz'}: was of another sweep; every portion was evaluated again")
            state = None
        if state is None:
            if self._asked and not self.notes:
                self.notes.append(f"{self.folder.parent}: nothing finished was there to go on with; it began anew")
            return set()
        fold.restore(state)
        self._checks = dict(zip(state["done"].tolist(), state["checks"].tolist(), strict=True))
        self.notes.append(f"went on after {len(self._checks):,} finished portions")
        return set(self._checks)

    def save(self, evaluated: PortionResult, fold: Fold) -> None:
        """Keep a portion's rows, then take it into ``fold`` and count it."""
        if evaluated.rows is not None:
            write_bytes(self._path(evaluated.portion.number), evaluated.rows)
        with self._changing():
            fold.merge(evaluated.fold)
            self._checks[evaluated.portion.number] = zlib.crc32(evaluated.rows or b"")
        if self._due():
            self.save_state(fold)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The fold changes: where that is interrupted, it is not saved any more, and the last state on disk stays."""
        self._whole = False
        yield
        self._whole = True

    def close(self, fold: Fold, interrupted: bool) -> None:
        """Keep what is finished when the evaluation ends, unless that is the work of a moment."""
        if self._whole and (interrupted or self._due()):
            self.save_state(fold)

    def _due(self) -> bool:
        return time.monotonic() - self._saved >= EVERY

    def save_state(self, fold: Fold) -> None:
        """Write the fold and the numbers of the portions that it holds."""
        done, checks = np.asarray(list(self._checks), np.int64), np.asarray(list(self._checks.values()), np.int64)
        with self._changing():  # the front is compared before it is told
            arrays = fold.arrays()
        content = io.BytesIO()
        np.savez(content, mark=np.asarray(self._mark), done=done, checks=checks, **arrays)  # pyright: ignore[reportArgumentType]
        write_bytes(self.folder / "state.npz", content.getvalue())
        self._saved = time.monotonic()

    def rows(self, portion: Portion, again: Callable[[Portion], bytes]) -> bytes:
        """Return the rows of a finished portion; what is damaged is evaluated by ``again``."""
        path = self._path(portion.number)
        rows = path.read_bytes() if path.exists() else b""
        if zlib.crc32(rows) == self._checks[portion.number]:
            return rows
        self.notes.append(f"{path}: was {'damaged' if rows else 'missing'}; its designs were evaluated again")
        return again(portion)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"

    def remove(self) -> None:
        """Remove the folder: the results are whole."""
        shutil.rmtree(self.folder, ignore_errors=True)


def leftovers(folder: Path) -> None:
    """Remove results that an interrupted process did not get to name; somebody else's files stay."""
    for name in RESULTS:
        (folder / f"{name}{PARTIAL}").unlink(missing_ok=True)
