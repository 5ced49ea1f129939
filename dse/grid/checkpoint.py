"""The checkpoint of a sweep: what it has finished, on disk, so that it can go on after an interruption.

The folder ``unfinished`` next to the results holds ``sweep.json`` (what is swept: :func:`identity`), ``state.npz`` (the
accumulator of the finished shards, and their numbers) and, where every design is kept, a file of rows a shard. Every
file gets its name only when it is whole, and the rows of a shard before the state that counts it, so that the state is
true whatever ends the process. State and ``sweep.json`` bear the mark of one sweep. The folder is removed when the
results are whole.
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
from dse.grid.accumulator import Accumulator
from dse.grid.machine import machine, unlike
from dse.grid.model_version import model_version
from dse.grid.shard import Shard, ShardResult
from dse.grid.store import RESULTS, write_json
from dse.space.space import Space

FOLDER = "unfinished"
FORMAT = 5

OURS = re.compile(r"sweep\.json|shard\.json|state\.npz|\d{6,}\.arrow")
"""Names of the files in it."""

EVERY = 2.0
"""Seconds between two states on disk: what is lost at most, besides the shards in evaluation."""

GO_ON = "give --resume to go on"


def identity(space: Space, keep: str, chunk: int, shard: int, part: str | None = None) -> dict[str, Any]:
    """Return what must be the same for a sweep to go on: inputs, version, what is kept, and the sizes of its parts.

    ``chunk`` and ``shard`` [design]; ``part``: which part of the grid alone is swept, as "3/64".
    """
    return {
        "format": FORMAT,
        "dse": dse.__version__,
        "model": model_version(),
        "keep": keep,
        "floats": float_type().__name__,
        "chunk": chunk,
        "portion": shard,
        "part": part,
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
        "model": "code of the model",
        "keep": "--keep",
        "floats": "type of numbers",
        "chunk": "designs a chunk",
        "portion": "designs a portion",
        "part": "--shard",
        "format": "format",
    }
    changes = [
        f"{word} ({before.get(key)}, now {now[key]})" for key, word in words.items() if before.get(key) != now[key]
    ]
    for key, value in now["machine"].items():
        old = before["machine"].get(key)
        if key not in ("processor", "device", "dse") and old != value:
            changes.append(f"{key} ({old}, now {value})")
    changes += _tables("space", before["space"], now["space"])
    attributes = [name for name, value in now["base"].items() if before["base"].get(name) != value]
    changes += [f"base GPU ({', '.join(attributes)})"] if attributes else []
    changes += [f"the {key} model" for key in ("timing", "power") if before.get(key) != now[key]]
    if not changes and before["digest"] != now["digest"]:
        changes.append("the kernels of its workloads")
    return changes


def _tables(what: str, before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    changes = []
    for key in dict.fromkeys([*now, *before]):
        old, new = before.get(key), json.loads(json.dumps(now.get(key)))
        if isinstance(old, dict) and isinstance(new, dict):
            changes += [f"[{key}] {name}" for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)]
        elif old != new:
            changes.append(f"{key} of the {what}")
    return changes


class InMemory:
    """What :class:`Checkpoint` is, for a sweep without a folder: nothing outlives the process."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._rows: dict[int, bytes] = {}

    def restore(self, accumulator: Accumulator) -> set[int]:
        """Return the numbers of the finished shards: none."""
        return set()

    def save(self, evaluated: ShardResult, accumulator: Accumulator) -> None:
        """Merge a shard into ``accumulator`` and keep its rows."""
        accumulator.merge(evaluated.accumulator)
        if evaluated.rows is not None:
            self._rows[evaluated.shard.number] = evaluated.rows

    def close(self, accumulator: Accumulator, interrupted: bool) -> None:
        """Nothing is kept."""

    def rows(self, shard: Shard, again: Callable[[Shard], bytes]) -> bytes:
        """Return the rows of a finished shard."""
        return self._rows[shard.number]

    def remove(self) -> None:
        """Nothing is on disk."""


class Checkpoint:
    """The folder of a sweep in progress; ``notes`` say what was resumed, or damaged."""

    def __init__(self, folder: Path, inputs: dict[str, Any], resume: bool) -> None:
        self.folder, self.notes = folder / FOLDER, []
        self._identity, self._mark = inputs, f"{inputs['digest']} {uuid4().hex}"
        self._checks: dict[int, int] = {}
        self._whole = True  # the accumulator holds the shards of _checks, and no part of another one
        self._saved, self._resume_requested = 0.0, resume
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
            changes, self._mark = differences(before, self._identity), before.get("mark")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path}: cannot be read; remove {self.folder} to begin anew") from None
        if changes:
            raise InputError(
                f"{self.folder}: is of another sweep, which differs in {'; '.join(changes)}; sweep that one, or remove "
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

    def restore(self, accumulator: Accumulator) -> set[int]:
        """Restore ``accumulator`` from the finished shards and return their numbers."""
        self._saved = time.monotonic()
        state = self._state() if self._resuming else None
        if state is not None and str(state["mark"]) != self._mark:
            self.notes.append(f"{self.folder / 'state.npz'}: was of another sweep; every portion was evaluated again")
            state = None
        if state is None:
            if self._resume_requested and not self.notes:
                self.notes.append(f"{self.folder.parent}: nothing finished was there to go on with; it began anew")
            return set()
        accumulator.restore(state)
        self._checks = dict(zip(state["done"].tolist(), state["checks"].tolist(), strict=True))
        self.notes.append(f"went on after {len(self._checks):,} finished portions")
        return set(self._checks)

    def save(self, evaluated: ShardResult, accumulator: Accumulator) -> None:
        """Write a shard's rows, then merge it into ``accumulator`` and count it."""
        if evaluated.rows is not None:
            write_bytes(self._path(evaluated.shard.number), evaluated.rows)
        with self._changing():
            accumulator.merge(evaluated.accumulator)
            self._checks[evaluated.shard.number] = zlib.crc32(evaluated.rows or b"")
        if self._due():
            self.save_state(accumulator)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Mark the accumulator as incomplete meanwhile: an interruption here keeps the last state on disk."""
        self._whole = False
        yield
        self._whole = True

    def close(self, accumulator: Accumulator, interrupted: bool) -> None:
        """Save the finished shards when the evaluation ends, unless little has been done since the last state."""
        if self._whole and (interrupted or self._due()):
            self.save_state(accumulator)

    def _due(self) -> bool:
        return time.monotonic() - self._saved >= EVERY

    def save_state(self, accumulator: Accumulator) -> None:
        """Write the accumulator and the numbers of the shards that it holds."""
        done, checks = np.asarray(list(self._checks), np.int64), np.asarray(list(self._checks.values()), np.int64)
        with self._changing():  # the front is compared before it is written
            arrays = accumulator.arrays()
        content = io.BytesIO()
        np.savez(content, mark=np.asarray(self._mark), done=done, checks=checks, **arrays)  # pyright: ignore[reportArgumentType]
        write_bytes(self.folder / "state.npz", content.getvalue())
        self._saved = time.monotonic()

    def rows(self, shard: Shard, again: Callable[[Shard], bytes]) -> bytes:
        """Return the rows of a finished shard; ``again`` evaluates what is damaged."""
        path = self._path(shard.number)
        rows = path.read_bytes() if path.exists() else b""
        if zlib.crc32(rows) == self._checks[shard.number]:
            return rows
        self.notes.append(f"{path}: was {'damaged' if rows else 'missing'}; its designs were evaluated again")
        return again(shard)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"

    def remove(self) -> None:
        """Remove the folder: the results are whole."""
        shutil.rmtree(self.folder, ignore_errors=True)


def leftovers(folder: Path) -> None:
    """Remove partial results of an interrupted process; files of other names stay."""
    for name in RESULTS:
        (folder / f"{name}{PARTIAL}").unlink(missing_ok=True)
