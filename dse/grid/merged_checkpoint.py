"""What the finished shards of a job left, read as the checkpoint of one sweep."""

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.base.errors import InputError
from dse.grid.accumulator import Accumulator
from dse.grid.checkpoint import FOLDER as UNFINISHED
from dse.grid.shard import Shard, ShardResult
from dse.grid.store import write_json
from dse.space.space import Space

FOLDER = "shard"
"""Folder of a finished part, next to where results would be."""

FORMAT = 1


def write_part(folder: Path, space: Space, part: tuple[int, int]) -> None:
    """Say that the part of a sweep in the checkpoint's folder is whole, and give it the name of a finished one."""
    unfinished = folder / UNFINISHED
    origin = os.path.relpath(space.folder.resolve(), folder.resolve())
    write_json(unfinished / "shard.json", {"format": FORMAT, "shard": part, "name": space.name, "folder": origin})
    unfinished.rename(folder / FOLDER)


class FinishedPart:
    """A finished part in its ``folder``: ``number`` of ``count``, of the sweep that ``identity`` tells."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._place = folder, folder / FOLDER
        record = self._read("shard.json")
        self.identity: dict[str, Any] = self._read("sweep.json")
        try:
            if record["format"] != FORMAT:
                raise InputError(f"{self._place}: was written by another version; sweep that shard again")
            self.number, self.count = map(int, record["shard"])
            self.name, self.origin = str(record["name"]), folder / record["folder"]
        except (KeyError, TypeError, ValueError):
            raise self._damaged("shard.json") from None

    def _read(self, name: str) -> dict[str, Any]:
        try:
            document = json.loads((self._place / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent() from None
        except (OSError, ValueError):
            raise self._damaged(name) from None
        if not isinstance(document, dict):
            raise self._damaged(name)
        return document

    def _absent(self) -> InputError:
        if (self.folder / UNFINISHED).exists():
            return InputError(f"{self.folder}: its shard is not finished; the same command with --resume goes on")
        return InputError(f"{self.folder}: holds no shard; give the folders of 'dse sweep SPACE --shard K/N -o FOLDER'")

    def _damaged(self, name: str) -> InputError:
        return InputError(f"{self._place / name}: is cut short or damaged; sweep that shard again")

    def restore(self, accumulator: Accumulator) -> dict[int, int]:
        """Restore an empty ``accumulator`` and return the checksum of the rows of each shard that it holds."""
        try:
            with np.load(io.BytesIO((self._place / "state.npz").read_bytes())) as file:
                state = dict(file)
            if str(state["mark"]) != self.identity["mark"]:
                raise ValueError
            accumulator.restore(state)
            return dict(zip(state["done"].tolist(), state["checks"].tolist(), strict=True))
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
            raise self._damaged("state.npz") from None

    def rows(self, number: int) -> bytes:
        """Return the rows of a shard of the grid; none where they are gone."""
        path = self._place / f"{number:06d}.arrow"
        return path.read_bytes() if path.exists() else b""


class MergedCheckpoint:
    """What :class:`dse.grid.checkpoint.Checkpoint` is, for the finished parts of a sweep; ``notes`` say what was
    damaged."""

    def __init__(self, parts: Sequence[FinishedPart], empty: Callable[[], Accumulator], notes: list[str]) -> None:
        self.notes, self._parts, self._empty = notes, parts, empty
        self._owner: dict[int, tuple[FinishedPart, int]] = {}

    def restore(self, accumulator: Accumulator) -> set[int]:
        """Merge the parts into ``accumulator`` and return the numbers of their shards."""
        for part in self._parts:
            one = self._empty()
            self._owner |= {number: (part, check) for number, check in part.restore(one).items()}
            accumulator.merge(one)
        return set(self._owner)

    def save(self, evaluated: ShardResult, accumulator: Accumulator) -> None:
        """Nothing is evaluated: every shard is in a part."""
        raise AssertionError(f"shard {evaluated.shard.number} is in no part")

    def close(self, accumulator: Accumulator, interrupted: bool) -> None:
        """Nothing is kept."""

    def rows(self, shard: Shard, again: Callable[[Shard], bytes]) -> bytes:
        """Return the rows of a shard; ``again`` evaluates what is damaged."""
        part, check = self._owner[shard.number]
        rows = part.rows(shard.number)
        if zlib.crc32(rows) == check:
            return rows
        self.notes.append(f"{part.folder}: rows of a portion were damaged or missing; its designs were evaluated again")
        return again(shard)

    def remove(self) -> None:
        """The parts stay."""
