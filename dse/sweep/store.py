"""Files of a sweep: the designs as parquet, written chunk by chunk beside their final name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dse.errors import InputError
from dse.space.space import Space

PARTIAL = ".partial"


def open_folder(path: Path) -> Path:
    """Return ``path`` as a folder that can be written to; raises InputError where it cannot be one."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"probe{PARTIAL}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InputError(f"{path}: cannot be written to ({error.strerror}); give a folder with -o") from None
    return path


def discard_record(folder: Path) -> None:
    """Remove an earlier run's record and page, so that an interrupted sweep does not stand beside another's answer."""
    for name in ("run.json", "report.html"):
        (folder / name).unlink(missing_ok=True)


def design_table(space: Space, columns: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray],
                 reasons: np.ndarray, blank: np.ndarray) -> pa.Table:  # fmt: skip
    """Return designs as a table: axes, results (empty where ``blank``), ``feasible`` and ``reason``, a row a design."""
    arrays: dict[str, pa.Array] = {}
    for axis in space.axes:
        arrays[axis.name] = _axis_array(axis.attribute, columns[axis.name])
    for name, values in results.items():
        if name in arrays:  # an axis that is an objective too keeps its own type
            continue
        arrays[name] = pa.array(values.astype(np.float32), mask=blank if blank.any() else None)
    arrays["feasible"] = pa.array(reasons == "")
    arrays["reason"] = pa.array(reasons.tolist(), type=pa.string()).dictionary_encode()
    return pa.table(arrays)


def _axis_array(attribute: Any, numbers: np.ndarray) -> pa.Array:
    if attribute.choices:
        names = pa.array(list(attribute.choices))
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)
    if attribute.type == "bool":
        return pa.array(numbers.astype(bool))
    return pa.array(numbers.astype(np.int64) if attribute.type == "int" else numbers.astype(np.float64))


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
            self._partial, schema, compression="zstd", use_dictionary=others,
            use_byte_stream_split=floats, write_statistics=False,
        )  # fmt: skip

    def finish(self) -> None:
        """Close the file and give it its name."""
        if self._writer is not None:
            self._writer.close()
            self._partial.replace(self._path)

    def abandon(self) -> None:
        """Close the file and remove what was written."""
        if self._writer is not None:
            self._writer.close()
        self._partial.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document beside its name, then rename it."""
    partial = path.with_name(path.name + PARTIAL)
    partial.write_text(json.dumps(document, indent=1, sort_keys=False, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(path)
