"""The record of a run (``run.json``): what was run, on what, with which versions, and what a page needs again."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dse
from dse.errors import InputError
from dse.space.designs import sample_positions
from dse.space.space import Space, space_from_mapping
from dse.sweep.machine import processor
from dse.sweep.result import SweepResult
from dse.sweep.store import write_json
from dse.sweep.unfinished import FOLDER

FORMAT = 1


def write_record(result: SweepResult, folder: Path) -> None:
    """Write ``run.json``; what differs between two equal runs stands under ``timing`` alone."""
    summary = result.summary()
    document = {
        "format": FORMAT,
        "dse": dse.__version__,
        "digest": result.space.digest,
        "name": result.space.name,
        "space": result.space.content,
        "folder": os.path.relpath(result.space.folder.resolve(), folder.resolve()),
        "calibration": result.calibration,
        "n": result.n,
        "n_feasible": result.n_feasible,
        "n_pareto": len(result.front),
        "infeasible": result.infeasible,
        "objectives": summary["objectives"],
        "baseline": _exact(result.baseline),
        "axis_effects": _exact(result.axis_effects),
        "keep": result.keep,
        "top": _exact(result.top),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "processor": processor()},
        "libraries": result.libraries,
        "timing": {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": summary["seconds"],
            "notes": list(result.notes),
        },
    }
    write_json(folder / "run.json", document)


def _exact(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Columns as plain values that read back to the same numbers; an empty cell is None."""
    return {
        name: [None if pd.isna(v) else v.item() if hasattr(v, "item") else v for v in frame[name]] for name in frame
    }


def load_result(folder: Path) -> SweepResult:
    """Return the result of a finished sweep from its files; raises InputError naming what is missing or broken."""
    document = _read(folder / "run.json")
    try:
        origin = folder / document["folder"]
        space = space_from_mapping(document["space"], str(folder / "run.json"), document["name"], origin)
        _check_origin(folder, document["digest"], space, document["keep"])
        front = pq.read_table(folder / "pareto.parquet").to_pandas()
        return SweepResult(
            space=space,
            baseline=_frame(document["baseline"], front),
            front=front,
            axis_effects=pd.DataFrame(document["axis_effects"]),
            sample=_sample(folder, space, document["keep"]),
            n=document["n"],
            n_feasible=document["n_feasible"],
            infeasible=document["infeasible"],
            seconds=document["timing"]["seconds"],
            folder=folder,
            libraries=document["libraries"],
            keep=document["keep"],
            top=pd.DataFrame(document["top"]),
        )
    except KeyError as error:
        raise InputError(f"{folder / 'run.json'}: {error.args[0]} is missing; sweep again") from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{folder}: {error}; give the folder of a finished sweep") from None


def _check_origin(folder: Path, digest: str, space: Space, keep: str) -> None:
    """Refuse tables that are not this run's, and a run whose inputs or version are no longer at hand."""
    for name in (f"{'points' if keep == 'all' else 'sample'}.parquet", "pareto.parquet"):
        metadata = pq.read_metadata(folder / name).metadata or {}
        if metadata.get(b"dse.digest", b"").decode() != digest:
            raise InputError(f"{folder / name}: is not of the run that run.json records; sweep again")
    if space.digest != digest:
        raise InputError(
            f"{folder / 'run.json'}: records a run of other inputs or of another version (digest {digest}, now "
            f"{space.digest}); sweep again"
        )


def finished(folder: Path, space: Space, keep: str) -> SweepResult | None:
    """Return the result of a sweep that has ended in a folder, None where it kept something else, or was refined.

    Raises InputError where it is of another space: there is nothing to go on with.
    """
    if (folder / FOLDER).exists() or not (folder / "run.json").exists():
        return None
    try:
        found = load_result(folder)
    except InputError:
        return None
    if found.space.digest != space.digest:
        raise InputError(
            f"--resume: {folder} holds the finished sweep of another space, or of {found.space.name} before it was "
            "changed; leave --resume out to replace it, or give another folder"
        )
    return found if found.keep == keep and "off_grid" not in found.front else None


def _sample(folder: Path, space: Space, keep: str) -> pd.DataFrame:
    """Read the designs that pictures show, of all designs one row group at a time."""
    if keep == "front":
        return pq.read_table(folder / "sample.parquet").to_pandas()
    file, parts, start = pq.ParquetFile(folder / "points.parquet"), [], 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        parts.append(table.take(sample_positions(space.size, np.asarray(table["feasible"]), start)))
        start += len(table)
    return pa.concat_tables(parts).to_pandas()


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the folder of a finished sweep") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: is not a run record of this version; sweep again")
    return document


def _frame(columns: dict[str, list[Any]], like: pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.astype({name: kind for name, kind in like.dtypes.items() if name in frame and kind == np.float32})
