"""Files of a sweep: the designs as Parquet, written chunk by chunk and renamed when they are whole."""

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dse.base.atomic_files import PARTIAL, rename, write_bytes
from dse.base.errors import InputError, expect
from dse.space.space import Space

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

RESULTS = ("points.parquet", "sample.parquet", "pareto.parquet", "run.json", "report.html")
"""Files of a finished run."""


def open_folder(out: str | Path) -> Path:
    """Return ``out`` as a folder that can be written to; raises InputError where it cannot be one."""
    path = _folder(out)
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()  # of a name that nobody else's file has
    except OSError as error:
        raise InputError(f"{path}: cannot be written to ({error.strerror}); give a folder with -o") from None
    return path


@contextmanager
def results_in(out: str | Path) -> Iterator[Path]:
    """Open a folder as :func:`open_folder`; remove it again where nothing was written into it."""
    path = _folder(out)
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        yield open_folder(path)
    finally:
        for place in made:
            with suppress(OSError):  # the system removes no folder that holds something
                place.rmdir()


def _folder(out: str | Path) -> Path:
    """``out`` as a path; raises InputError where it is none."""
    expect("out", out, (str, os.PathLike), "give the path of a folder")
    return Path(out)


def refuse_other_kind(folder: Path, search: bool, name: str) -> None:
    """Raise InputError where a folder holds a search and a sweep is to be written, or the reverse, or results of a
    space of another ``name``, or nobody knows of which."""
    path = folder / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        is_search, of = "search" in record, record.get("name", name)
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, AttributeError):
        raise InputError(
            f"{path}: cannot be read, nor whose results these are; give -o another folder, or remove it"
        ) from None
    holds, other = ("search", "sweep") if is_search else ("sweep", "search")
    if is_search != search:
        raise InputError(f"{folder}: holds a {holds} (run.json); give -o another folder for the {other}")
    if of != name:
        raise InputError(f"{folder}: holds a {holds} of the space {of!r} (run.json); give -o another folder")


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; raises InputError where another one is writing there.

    The lock is the system's, on the folder itself: it ends with the process that holds it, however that ends. Windows
    and some network file systems have none; there nobody is kept out.
    """
    place = _locked(folder)
    try:
        yield
    finally:
        if place is not None:
            os.close(place)


def _locked(folder: Path) -> int | None:
    """Return the open folder that this process has locked, None where it has no lock."""
    if fcntl is None:
        return None
    place = None
    try:
        place = os.open(folder, os.O_RDONLY)
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if place is not None:
            os.close(place)
        if isinstance(error, BlockingIOError):
            raise InputError(
                f"{folder}: another sweep or search is writing there; wait for its end, or give another folder with -o"
            ) from None
        return None
    return place


@contextmanager
def writing(folder: Path, go_on: str) -> Iterator[None]:
    """Turn a disk that is full or does not take a file into a sentence: raises InputError, ending with ``go_on``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error):
            what, remedy = "the disk is full or its quota used up", "make room"
        elif isinstance(error, FileNotFoundError) and folder in Path(str(error.filename)).parents:
            what, remedy = f"{error.filename} is gone, as if another process had cleared it", "let one run write there"
        else:
            what, remedy = f"cannot be written to ({error.strerror or error})", "see that it can"
        raise InputError(f"{folder}: {what}; {remedy}, then {go_on}") from None


@contextmanager
def reading(path: Path, again: str = "sweep again") -> Iterator[None]:
    """Turn a table of a finished run that is gone or damaged into a sentence: raises InputError, ending with
    ``again``."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the folder of a finished sweep, or {again}") from None
    except (OSError, pa.ArrowException) as error:
        why = " ".join(str(error).split()).rstrip(". ")
        raise InputError(f"{path}: cannot be read, as if cut short or damaged ({why}); {again}") from None


def packed(tables: Sequence[pa.Table]) -> bytes:
    """Return tables as bytes that :func:`unpacked` reads again, one by one, each of them one batch."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, tables[0].schema, options=options) as writer:
        for table in tables:
            writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def unpacked(content: bytes) -> Iterator[pa.Table]:
    """Yield the tables of :func:`packed`."""
    for batch in pa.ipc.open_stream(content):
        yield pa.Table.from_batches([batch])


def discard_record(folder: Path) -> None:
    """Remove an earlier run's record and page, so that an interrupted sweep has no other's answer."""
    for name in ("run.json", "report.html"):
        (folder / name).unlink(missing_ok=True)


def design_schema(space: Space, results: Iterable[str]) -> pa.Schema:
    """Return the typed columns of a sweep's designs.

    Axes have their attribute's type, results are 32-bit numbers that may be empty, then come ``feasible`` (a truth) and
    ``reason`` (a text). An axis that is an objective too keeps its own type.
    """
    types = {axis.name: _axis_type(axis.attribute) for axis in space.axes}
    types |= {name: pa.float32() for name in results if name not in types}
    return pa.schema(types | {"feasible": pa.bool_(), "reason": pa.dictionary(pa.int32(), pa.string())})


def design_table(
    space: Space,
    columns: Mapping[str, np.ndarray],
    results: Mapping[str, np.ndarray],
    reasons: np.ndarray,
    empty: Mapping[str, np.ndarray],
) -> pa.Table:
    """Return designs as a table: axes, results (none where ``empty``), ``feasible`` and ``reason``, a row a design."""
    schema = design_schema(space, results)
    arrays = {axis.name: _axis_array(axis.attribute, columns[axis.name]) for axis in space.axes}
    for name, values in results.items():
        if name not in arrays:
            arrays[name] = pa.array(values.astype(np.float32), mask=empty[name] if empty[name].any() else None)
    arrays["feasible"] = pa.array(reasons == "")
    arrays["reason"] = pa.array(reasons.tolist(), type=pa.string()).dictionary_encode()
    return pa.table(arrays, schema=schema)


def _axis_type(attribute: Any) -> pa.DataType:
    if attribute.choices:
        return pa.dictionary(pa.int32(), pa.string())
    return {"bool": pa.bool_(), "int": pa.int64()}.get(attribute.type, pa.float64())


def _axis_array(attribute: Any, numbers: np.ndarray) -> pa.Array:
    if attribute.choices:
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(list(attribute.choices)))
    return pa.array(numbers.astype(_axis_type(attribute).to_pandas_dtype()))


class TableWriter:
    """A parquet file that grows chunk by chunk and gets its name only when it is whole."""

    def __init__(self, path: Path, metadata: Mapping[str, str]) -> None:
        self._path = path
        self._partial = path.with_name(path.name + PARTIAL)
        self._metadata = {key.encode(): value.encode() for key, value in metadata.items()}
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append one chunk as a row group."""
        writer = self._writer = self._writer or self._open(table)
        writer.write_table(table.replace_schema_metadata(self._metadata))

    def _open(self, table: pa.Table) -> pq.ParquetWriter:
        schema = table.schema.with_metadata(self._metadata)
        floats = [f.name for f in schema if f.type == pa.float32()]
        others = [f.name for f in schema if f.type != pa.float32()]
        return pq.ParquetWriter(
            self._partial,
            schema,
            compression="zstd",
            use_dictionary=others,
            use_byte_stream_split=floats,
            write_statistics=False,
        )

    def finish(self) -> None:
        """Close the file and give it its name."""
        if self._writer is not None:
            self._writer.close()
            rename(self._partial, self._path)

    def abandon(self) -> None:
        """Close the file and remove what was written."""
        if self._writer is not None:
            with suppress(OSError):  # a full disk does not take the end of the file either
                self._writer.close()
        self._partial.unlink(missing_ok=True)


def provenance(space: Space) -> dict[str, str]:
    """Return the metadata of a table: its space and the digest of all inputs."""
    return {"dse.space": space.name, "dse.digest": space.digest}


def write_table(path: Path, table: pa.Table, metadata: Mapping[str, str]) -> None:
    """Write a whole table."""
    writer = TableWriter(path, metadata)
    try:
        writer.write(table)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document under another name, then rename it."""
    text = json.dumps(document, indent=1, sort_keys=False, allow_nan=False) + "\n"
    write_bytes(path, text.encode())
