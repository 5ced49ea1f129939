"""Merging the parts of a sweep: tables and page are the bytes of one sweep, since a grid is an index."""

from collections.abc import Container, Sequence
from pathlib import Path

from dse.base.errors import InputError, expect, paths_of
from dse.grid.checkpoint import FOLDER, differences
from dse.grid.machine import unlike
from dse.grid.merged_checkpoint import FinishedPart, MergedCheckpoint
from dse.grid.result import SweepResult
from dse.grid.shard import shards
from dse.grid.store import alone_in, refuse_other_kind, results_in, writing
from dse.grid.sweep_run import Progress, SweepRun
from dse.space.space import Space, space_from_mapping

NAMED = 8
"""Missing shards that are named, at most."""


def merge(
    folders: Sequence[str | Path], out: str | Path | None = None, progress: Progress | None = None
) -> SweepResult:
    """Return the result of the sweep whose parts lie in ``folders`` (:func:`dse.sweep_shard`), in any order.

    ``out``: a folder for the tables of the whole sweep, which are those of one process byte for byte. Raises
    InputError naming a part that is missing, given twice, not finished, or of another sweep.
    """
    expect("folders", folders, list | tuple, "give a list of the folders of shards")
    parts = parts_of(paths_of("folders", folders))
    space = space_of_parts(parts)
    if out is None:
        return _run(space, parts, None, progress).run()
    with results_in(out) as folder, alone_in(folder), writing(folder, "merge again"):
        refuse_other_kind(folder, search=False, name=space.name)
        if (folder / FOLDER).exists():
            raise InputError(f"{folder}: holds a sweep or a shard that is not finished; give another folder with -o")
        return _run(space, parts, folder, progress).write()


def parts_of(folders: Sequence[Path]) -> list[FinishedPart]:
    """Return the parts in folders, by number; raises InputError where they are not one sweep, whole and each once."""
    if not folders:
        raise InputError("give the folders of a sweep's shards, as 'dse merge shards/*'")
    parts = [FinishedPart(folder) for folder in folders]
    first, by_number = parts[0], dict[int, FinishedPart]()
    for part in parts:
        if part.count != first.count:
            raise InputError(
                f"{part.folder}: holds shard {part.number} of {part.count}, {first.folder} one of {first.count}; "
                "merge shards of one division"
            )
        if changes := differences(first.identity | {"part": None}, part.identity | {"part": None}):
            raise InputError(
                f"{part.folder}: is of another sweep than {first.folder}, which differs in {'; '.join(changes)}"
            )
        other = by_number.setdefault(part.number, part)
        if other is not part:
            raise InputError(
                f"shard {part.number}/{part.count} is given twice, in {other.folder} and {part.folder}; leave one out"
            )
    _refuse_gaps(first.count, by_number)
    return [by_number[number] for number in sorted(by_number)]


def _refuse_gaps(count: int, numbers: Container[int]) -> None:
    missing = [number for number in range(1, count + 1) if number not in numbers]
    if missing:
        named = ", ".join(map(str, missing[:NAMED])) + (" and others" if len(missing) > NAMED else "")
        are = "is" if len(missing) == 1 else "are"
        raise InputError(f"of {count} shards {len(missing)} {are} missing: {named}; give their folders too")


def space_of_parts(parts: Sequence[FinishedPart]) -> Space:
    """Return the space that parts were swept of; raises InputError where it cannot be read, or has changed since."""
    first = parts[0]
    try:
        space = space_from_mapping(first.identity["space"], str(first.folder), first.name, first.origin)
    except OSError as error:
        raise InputError(f"{first.folder}: {error}; the files that its space names are needed") from None
    if space.digest != first.identity["digest"]:
        raise InputError(f"{first.folder}: was swept of other inputs or by another version of dse; sweep again")
    return space


def _run(space: Space, parts: Sequence[FinishedPart], folder: Path | None, progress: Progress | None) -> SweepRun:
    """The run that merges: its shards are those of the parts, wherever these were evaluated."""
    identity = parts[0].identity
    run = SweepRun(space, folder, identity["keep"], progress, None, parts[0].count)
    run.shards = shards(space.size, identity["chunk"], run.parts)
    now = run.identity() | {key: identity[key] for key in ("chunk", "portion")}
    if changes := differences(identity, now | {"part": identity["part"]}):
        raise InputError(f"{parts[0].folder}: cannot be merged here, which differs in {'; '.join(changes)}")
    others = [", ".join(unlike(now["machine"], part.identity["machine"])) for part in parts]
    notes = [
        f"shards with {text}: equal to one machine's result within about 1e-6, not to the bit"
        for text in others
        if text
    ]
    run.checkpoint = MergedCheckpoint(parts, run.evaluator.empty_accumulator, list(dict.fromkeys(notes)))
    return run
