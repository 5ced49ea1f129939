"""The record of a run (``run.json``): space, machine, versions, and what a page needs again."""

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
from dse.base.errors import InputError, shown
from dse.evaluate.space_program import result_columns
from dse.grid.checkpoint import FOLDER
from dse.grid.machine import processor
from dse.grid.model_version import model_version
from dse.grid.record_schema import again_of, check_columns, check_shape
from dse.grid.result import SweepResult
from dse.grid.store import reading, write_json
from dse.space.designs import sample_positions
from dse.space.space import Space, space_from_mapping

FORMAT = 1

EFFECTS = ("axis", "value", "unit", "objective", "number", "median", "best", "at_baseline")
"""Columns of ``axis_effects``, the last four of numbers."""


def write_record(result: SweepResult, folder: Path) -> None:
    """Write ``run.json``; what differs between two equal runs stands under ``timing`` alone."""
    summary = result.summary()
    document = {
        "format": FORMAT,
        "dse": dse.__version__,
        "model": model_version(),
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


def load_result(folder: Path, any_version: bool = False) -> SweepResult:
    """Return the result of a finished sweep from its files; raises InputError naming what is missing or broken.

    ``any_version``: also one of other inputs or of another version, as long as it has the columns of this one; its
    ``computed_by`` then says so.
    """
    document = read_record(folder)
    origin, again = folder / document["folder"], again_of(document)
    try:
        space = space_from_mapping(document["space"], str(folder / "run.json"), document["name"], origin)
    except OSError as error:
        raise InputError(f"{folder}: {error}; give the folder of a finished sweep") from None
    designs, pareto = folder / _designs_file(document["keep"]), folder / "pareto.parquet"
    for table in (designs, pareto):
        with reading(table, again):
            _check_origin(table, document["digest"])
    if not any_version:
        _check_digest(folder, document["digest"], space)
    for table in (designs, pareto):
        with reading(table, again):
            names = pq.read_schema(table).names
        _check_table(table, names, space)
    _check_record(folder, document, space)
    with reading(pareto, again):
        front = pq.read_table(pareto).to_pandas()
    with reading(designs, again):
        _check_counts(folder, document, space, front)
        sample = _sample(designs, space, document["keep"])
    return SweepResult(
        space=space,
        baseline=_frame(document["baseline"], front),
        front=front,
        axis_effects=pd.DataFrame(document["axis_effects"]),
        sample=sample,
        n=document["n"],
        n_feasible=document["n_feasible"],
        infeasible=document["infeasible"],
        seconds=document["timing"]["seconds"],
        folder=folder,
        libraries=document["libraries"],
        keep=document["keep"],
        top=pd.DataFrame(document["top"]),
        computed_by="" if space.digest == document["digest"] and _of_this_model(document) else _computed_by(document),
    )


def _of_this_model(document: dict[str, Any]) -> bool:
    """Whether the model that computed a result is this version's."""
    return document.get("model") == model_version()


def _computed_by(document: dict[str, Any]) -> str:
    """Which version computed a result, in words."""
    parts = [f"dse {document['dse']}"] if isinstance(document.get("dse"), str) else ["another dse"]
    parts += [f"(model {document['model']})"] if isinstance(document.get("model"), str) else []
    finished = document["timing"].get("finished")
    return " ".join(parts + ([f"on {finished[:10]}"] if isinstance(finished, str) else []))


def _designs_file(keep: str) -> str:
    """Return the file of the designs: of every one, or of those that pictures show."""
    return "points.parquet" if keep == "all" else "sample.parquet"


def _check_origin(table: Path, digest: str) -> None:
    """Refuse a table that is not this run's."""
    metadata = pq.read_metadata(table).metadata or {}
    if metadata.get(b"dse.digest", b"").decode() != digest:
        raise InputError(f"{table}: is not of the run that run.json records; sweep again")


def _check_digest(folder: Path, digest: str, space: Space) -> None:
    """Refuse a run whose inputs or version are no longer at hand."""
    if space.digest != digest:
        raise InputError(
            f"{folder / 'run.json'}: records a run of other inputs or of another version of it (digest {digest}; "
            f"now {space.digest}); pandas.read_parquet still reads its tables; sweep again for a page of this version"
        )


def _columns(space: Space) -> tuple[list[str], set[str]]:
    """The columns that every table of designs has, and those of them that hold numbers."""
    axes, results = [axis.name for axis in space.axes], result_columns(space)
    return axes + results + ["feasible", "reason"], set(results) - set(axes)


def _check_table(table: Path, names: list[str], space: Space) -> None:
    """Refuse a table without the columns that every table of designs has."""
    check_columns(str(table), {name: [] for name in names}, _columns(space)[0])


def _check_record(folder: Path, document: dict[str, Any], space: Space) -> None:
    """Refuse tables of the record without the columns that every table of designs has."""
    where, (required, numeric) = folder / "run.json", _columns(space)
    check_columns(f"{where}: baseline", document["baseline"], required, numeric)
    check_columns(f"{where}: axis_effects", document["axis_effects"], EFFECTS, EFFECTS[-4:])
    if document["top"]:
        check_columns(f"{where}: top", document["top"], ["best_in", *required], numeric)
    if (rows := len(document["baseline"]["feasible"])) != 1:
        raise InputError(f"{where}: baseline holds {rows} rows, not the one of the base GPU; sweep again")


def _check_counts(folder: Path, document: dict[str, Any], space: Space, front: pd.DataFrame) -> None:
    """Refuse a record whose counts of designs are not those of its tables, or contradict each other."""
    n, feasible, refused = document["n"], document["n_feasible"], sum(document["infeasible"].values())
    on_grid = len(front) - int(front["off_grid"].sum() if "off_grid" in front else 0)
    facts = [("n_pareto", len(front), "pareto.parquet holds")]
    if document["keep"] == "all":
        column = np.asarray(pq.read_table(folder / "points.parquet", columns=["feasible"])["feasible"])
        facts += [
            ("n", len(column), "points.parquet holds"),
            ("n_feasible", int(column.sum()), "the feasible rows of points.parquet are"),
        ]
    facts.append(("n", feasible + refused, "n_feasible and infeasible are"))
    if "search" not in document:
        facts.append(("n", space.size, "the grid has"))
    for key, count, words in facts:
        if document[key] != count:
            raise InputError(f"{folder / 'run.json'}: {key} = {document[key]}, but {words} {count}; sweep again")
    if not on_grid <= feasible <= n:
        raise InputError(
            f"{folder / 'run.json'}: n_feasible = {feasible}, but {on_grid} on the front and n = {n}; sweep again"
        )


def finished(folder: Path, space: Space, keep: str) -> SweepResult | None:
    """Return the result of a sweep that has ended in a folder, whole, kept as ``keep`` says and not refined, else None.

    Raises InputError where it is of another space: there is nothing to go on with.
    """
    if (folder / FOLDER).exists() or not (folder / "run.json").exists():
        return None
    try:
        document = read_record(folder)
    except InputError:
        return None
    if document["digest"] != space.digest:
        raise InputError(
            f"--resume: {folder} holds the finished sweep of another space, or of {document['name']} before it was "
            "changed (or a file that it names, or dse); leave --resume out to replace it, or give another folder"
        )
    if not _of_this_model(document):
        raise InputError(
            f"--resume: {folder} holds the sweep of {_computed_by(document)}, another version of the model than this "
            f"({model_version()}); leave --resume out to replace it, or give another folder"
        )
    try:
        result = load_result(folder)
    except InputError:
        return None
    return result if result.keep == keep and "off_grid" not in result.front else None


def _sample(table: Path, space: Space, keep: str) -> pd.DataFrame:
    """Read the designs that pictures show, of all designs one row group at a time."""
    if keep == "front":
        return pq.read_table(table).to_pandas()
    file, parts, start = pq.ParquetFile(table), [], 0
    for number in range(file.num_row_groups):
        group = file.read_row_group(number)
        parts.append(group.take(sample_positions(space.size, np.asarray(group["feasible"]), start)))
        start += len(group)
    return pa.concat_tables(parts).to_pandas()


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a finished run; raises InputError where it is missing, or holds what none does."""
    path = folder / "run.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the folder of a finished sweep") from None
    except NotADirectoryError:
        raise InputError(f"{folder}: is a file; give the folder of a finished sweep") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); see that it can, or sweep or search again"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: is cut short or damaged ({error}); sweep or search again") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(
            f"{path}: {_of_version(document)}; its tables are Parquet, and pandas.read_parquet reads pareto.parquet "
            "and points.parquet; for a page of this version sweep or search again"
        )
    check_shape(path, document)
    return document


def _of_version(document: Any) -> str:
    """What a record of another format is, in words."""
    version = document.get("dse") if isinstance(document, dict) else None
    if not isinstance(document, dict) or "format" not in document:
        return "is not a run record of this version"
    of = f"of dse {shown(version)}, " if version else ""
    return f"is not a run record of this version, but {of}of format {shown(document['format'])}"


def _frame(columns: dict[str, list[Any]], like: pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.astype({name: kind for name, kind in like.dtypes.items() if name in frame and kind == np.float32})
