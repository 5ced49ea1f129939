"""The sweep: every design of a space's grid, in bounded memory, to a table, a front and a summary.

A pipeline: threads, devices or a cluster evaluate shards of the grid; an accumulator takes the front, the statistics
and the counts; a checkpoint holds what is finished; at the end all is written as tables.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, expect
from dse.base.units import GIGA
from dse.evaluate.space_program import result_columns
from dse.grid.checkpoint import GO_ON
from dse.grid.estimate import BYTES_PER_CELL, ON_DISK_LIMIT
from dse.grid.record import finished
from dse.grid.result import SweepResult
from dse.grid.store import alone_in, refuse_other_kind, results_in, writing
from dse.grid.sweep_run import Progress, SweepRun
from dse.space.space import Space, space_of

IN_MEMORY_LIMIT = 5_000_000
"""Most designs that are kept in memory when no folder is given."""

KEEP = ("all", "front")
"""What is kept: every design; or the front, the best of each objective, the axes' statistics and a sample."""


def sweep(
    space: Space | str | Path,
    out: str | Path | None = None,
    progress: Progress | None = None,
    *,
    keep: str | None = None,
    resume: bool = False,
    cluster: Any = None,
) -> SweepResult:
    """Evaluate every design of a space (or of the space file at a path) and return the result.

    ``out``: a folder for ``points.parquet``, ``pareto.parquet`` and ``run.json``; without it, the designs stay in
    memory. ``progress`` is called with the number of designs done since its last call, first with 0 when
    all inputs have been checked and XLA begins to compile. ``keep``: "all" designs (the
    default where they fit: ON_DISK_LIMIT, in memory IN_MEMORY_LIMIT), or only the "front" with the best of each
    objective, statistics of the axes and a sample, however many designs there are. ``resume``: go on with the sweep
    that was interrupted in ``out``; a finished one is read again. ``cluster``: a Dask scheduler's address, "local:N",
    or a cluster object of Dask's. The result does not depend on any of resume, cluster, threads and devices.
    Raises InputError.
    """
    space = space_of(space)
    expect("progress", progress, Callable | None, "give a function that takes the number of designs done")
    expect("resume", resume, bool, "give True or False")
    keep = what_to_keep(space, keep, out is not None)
    if cluster is not None:
        from dse.grid.cluster import check_cluster

        check_cluster(cluster)
    if out is None:
        if resume:
            raise InputError("--resume needs the folder of the interrupted sweep; give out=...")
        return SweepRun(space, None, keep, progress, cluster).run()
    with results_in(out) as folder, alone_in(folder), writing(folder, GO_ON):
        refuse_other_kind(folder, search=False, name=space.name)
        if resume and (result := finished(folder, space, keep)):
            return result
        return SweepRun(space, folder, keep, progress, cluster).go_on_in(folder, resume).write()


def what_to_keep(space: Space, keep: str | None, on_disk: bool) -> str:
    """Return which designs of a space to keep, "all" or "front"; raises InputError where all do not fit."""
    expect("keep", keep, str | None, f"give {' or '.join(KEEP)}")
    if keep not in (None, *KEEP):
        raise InputError(f"--keep {keep} is not accepted; give {' or '.join(KEEP)}")
    limit = ON_DISK_LIMIT if on_disk else IN_MEMORY_LIMIT
    if keep == "all" and space.size > limit:
        columns = len(result_columns(space)) + len(space.axes) + 2
        size = space.size * columns * (BYTES_PER_CELL if on_disk else 4) / GIGA
        where = "on disk" if on_disk else "in memory"
        raise InputError(
            f"--keep all: {space.size:,} designs of {columns} columns would take about {size:,.0f} GB {where}, and at "
            f"most {limit:,} are kept; give --keep front, or shorter axes"
        )
    return keep or ("all" if space.size <= limit else "front")
