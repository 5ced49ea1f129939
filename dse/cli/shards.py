"""One of several shards of a sweep, evaluated into a folder of its own (dse sweep --shard)."""

from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.cli.app import print_json, print_notes
from dse.cli.pages import folder_of_results


def sweep_shard_into(
    space: Any,
    shard: str,
    out: Path | None,
    keep: str | None,
    resume: bool,
    cluster: str | None,
    refine: bool,
    json_: bool,
) -> None:
    """Evaluate one of several shards of a space and tell where it lies."""
    from dse.grid.part import Part, sweep_shard
    from dse.reports.common.progress import counting

    part = Part.read(shard)
    if refine:
        raise InputError("--refine needs the whole front; leave it out with --shard")
    folder = folder_of_results(out, f"out-{file_name(space.name)}-{part.number}-of-{part.count}")
    try:
        with counting(max(space.size // part.count, 1), f"shard {part}") as progress:
            result = sweep_shard(space, folder, shard, progress, keep=keep, resume=resume, cluster=cluster)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command with --resume goes on") from None
    print_notes(*result.notes)
    if json_:
        print_json(result.document())
        return
    print(f"Shard {part}: {result.designs:,} of {space.size:,} designs in {folder}; 'dse merge' takes all {part.count}")


def file_name(name: str) -> str:
    """A space's name with what no file should have replaced."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
