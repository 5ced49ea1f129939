"""A part of a sweep (``--shard 3/64``): the consecutive shards of the grid that one of several jobs evaluates.

Jobs share nothing: each has a folder of its own, and :func:`dse.grid.merge.merge` makes one result of all folders.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, expect
from dse.grid.checkpoint import GO_ON, differences
from dse.grid.merged_checkpoint import FOLDER, FinishedPart, write_part
from dse.grid.shard import Shard
from dse.grid.store import alone_in, results_in, writing
from dse.grid.sweep import what_to_keep
from dse.grid.sweep_run import Progress, SweepRun
from dse.space.space import Space, space_of


@dataclass(frozen=True)
class Part:
    """Part ``number`` of ``count``, counted from 1."""

    number: int
    count: int

    @classmethod
    def read(cls, text: str) -> "Part":
        """Return the part that a text names, as "3/64"; raises InputError."""
        expect("shard", text, str, "give a text, as '3/64'")
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"--shard {text} is not accepted; give K/N, the K-th of N shards, as 3/64")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, shards: list[Shard]) -> list[Shard]:
        """Return the shards of the grid in this part: as many in each, but for one."""
        begin, end = (len(shards) * n // self.count for n in (self.number - 1, self.number))
        return shards[begin:end]


@dataclass(frozen=True)
class PartResult:
    """A part that has been evaluated: its ``designs``, in ``portions`` of the grid, lie in ``folder`` for merging."""

    part: Part
    folder: Path
    designs: int
    portions: int
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "shard": str(self.part),
            "folder": str(self.folder),
            "designs": self.designs,
            "portions": self.portions,
            "notes": list(self.notes),
        }


def sweep_shard(
    space: Space | str | Path,
    out: str | Path,
    shard: str,
    progress: Progress | None = None,
    *,
    keep: str | None = None,
    resume: bool = False,
    cluster: Any = None,
) -> PartResult:
    """Evaluate one of several parts of a space's grid into a folder of its own, for :func:`dse.merge`.

    ``shard``: which, as "3/64". The other arguments are those of :func:`dse.sweep`. Raises InputError.
    """
    space, part = space_of(space), Part.read(shard)
    keep = what_to_keep(space, keep, True)
    if cluster is not None:
        from dse.grid.cluster import check_cluster

        check_cluster(cluster)
    with results_in(out) as folder, alone_in(folder), writing(folder, GO_ON):
        if (folder / "run.json").exists():
            raise InputError(f"{folder}: holds a finished sweep or search (run.json); give each shard another folder")
        return _into(folder, part, SweepRun(space, folder, keep, progress, cluster, part.count), resume)


def _into(folder: Path, part: Part, run: SweepRun, resume: bool) -> PartResult:
    shards = part.of(run.shards)
    designs = sum(shard.stop - shard.start for shard in shards)
    if resume and (folder / FOLDER).exists():
        _refuse_another(FinishedPart(folder), run.identity(str(part)))
        return PartResult(part, folder, designs, len(shards), ("was finished already",))
    run.go_on_in(folder, resume, str(part))
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    run.run_part(shards)
    write_part(folder, run.space, (part.number, part.count))
    notes = [*run.notes, *run.checkpoint.notes]
    if not shards:
        notes.append(f"shard {part} is empty: the grid has {len(run.shards)} portions, so that fewer shards would do")
    return PartResult(part, folder, designs, len(shards), tuple(notes))


def _refuse_another(finished: FinishedPart, now: dict[str, Any]) -> None:
    if changes := differences(finished.identity, now):
        raise InputError(
            f"--resume: {finished.folder} holds a finished shard of another sweep, which differs in "
            f"{'; '.join(changes)}; leave --resume out to replace it, or give another folder"
        )
