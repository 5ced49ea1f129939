"""Measured tables: rows of operators with time and power, and kernels with AccelWattch's components beside watts."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.csv_table import numbers, read_table_file, refuse_capitals, refuse_cells, refuse_units, sha256, times_us
from dse.base.errors import InputError, accepted
from dse.base.skipped_rows import Skipped, counted
from dse.measured.columns import checked, measured_columns
from dse.measured.foreign_files import refuse_foreign
from dse.measured.network_runs.kinds import FORWARD, RUNS
from dse.measured.nsight_export import is_export, read_export
from dse.measured.row_shape import ATTENTION_SHAPE, MIXTURE_SHAPE, PRODUCT_SHAPE, VECTOR_SHAPE, bare_names

OPERATOR_COLUMNS = ("device", "op", "dtype", "batch", "m", "n", "k", "rows", "cols", "heads", "kv_heads", "head_dim",
                    "seq_q", "seq_kv", "latency_us")  # fmt: skip
"""Columns of a table of operators; power stands in ``power_w``. An empty cell does not apply."""

SHAPE_COLUMNS = OPERATOR_COLUMNS[3:-1]
"""Columns of a table of operators that hold numbers of a shape."""

ON_GPUS = tuple(op for op in RUNS if op != FORWARD)
"""Runs whose layers several GPUs may share."""

KNOWN_SHAPES = (PRODUCT_SHAPE, VECTOR_SHAPE, ATTENTION_SHAPE, ("batch", "seq_q", "seq_kv"), MIXTURE_SHAPE)
"""Columns of the shape of a product, a vector kernel, an attention, a run of a whole network, a mixture: a table has
those of its operators."""

KERNEL_COLUMNS = ("kernel", "benchmark_group", "meas_W")
"""Columns of a table of kernels; the components of a variant stand in ``VARIANT_PART_W``."""

LEAST_WATTS, MOST_WATTS = 2.0, 20_000.0
"""No board draws as little while it works, or as much: such a number is in kilowatts, or in milliwatts."""


@dataclass(frozen=True)
class KernelTable:
    """Kernels with measured power and AccelWattch's components [W]; ``parts`` by the sheet's names, shape (kernels,).

    ``frame`` holds the file's rows of these kernels; ``skipped`` counts rows without components or power.
    """

    path: str
    sha256: str
    variant: str
    kernels: tuple[str, ...]
    groups: tuple[str, ...]
    watts: np.ndarray
    parts: dict[str, np.ndarray]
    frame: pd.DataFrame
    skipped: int


@dataclass(frozen=True)
class OperatorTable:
    """Measured operators of the schema of OPERATOR_COLUMNS that have power, and how many rows were skipped and why."""

    path: str
    sha256: str
    frame: pd.DataFrame
    skipped: Skipped


def table_kind(path: Path) -> str:
    """Return "kernels" or "operators" by the columns of a measured table; raises InputError for any other."""
    columns = _read(path, rows=0).columns
    if "meas_W" in columns:
        return "kernels"
    if "power_w" in columns or "latency_us" in columns:
        return "operators"
    refuse_units(path, columns)
    refuse_capitals(path, columns, (*measured_columns(), *KERNEL_COLUMNS))
    raise InputError(
        f"{path}: is no measured table: it has neither power_w (operators, with {', '.join(OPERATOR_COLUMNS[:3])} ...) "
        f"nor meas_W (kernels with the components of AccelWattch)"
    )


def read_kernels(path: Path, variant: str = "hw") -> KernelTable:
    """Read kernels with the components of one variant: a column prefix, as hw or sass; raises InputError."""
    frame = _read(path)
    refuse_units(path, frame.columns)
    refuse_capitals(path, frame.columns, KERNEL_COLUMNS)
    _require(path, frame, KERNEL_COLUMNS)
    known = sorted({c.split("_")[0] for c in frame.columns if c.endswith("_CONSTP_W")})
    columns = [c for c in frame.columns if c.startswith(f"{variant}_") and c.endswith("_W")]
    columns = [c for c in columns if "unscaled" not in c and not c.endswith("_total_W")]
    if f"{variant}_CONSTP_W" not in columns:
        raise InputError(f"{path}: no components of variant {variant!r}; {accepted(variant, known)}")
    watts = numbers(path, frame, "meas_W")
    _refuse_watts(path, "meas_W", watts)
    keep = (watts > 0) & np.isfinite(watts) & frame[columns].notna().all(axis=1).to_numpy()
    kept = frame[keep].reset_index(drop=True)
    if kept.empty:
        raise InputError(f"{path}: no row of {len(frame)} has meas_W above 0 and all components; nothing to fit")
    _refuse_one(path, "benchmark_group", kept["benchmark_group"].astype(str))
    parts = {c.removeprefix(f"{variant}_").removesuffix("_W"): numbers(path, kept, c) for c in columns}
    return KernelTable(
        str(path),
        sha256(path),
        variant,
        tuple(kept["kernel"].astype(str)),
        tuple(kept["benchmark_group"].astype(str)),
        watts[keep],
        parts,
        kept,
        int((~keep).sum()),
    )


def read_operators(path: Path) -> OperatorTable:
    """Read operators with measured power; rows without are counted. Raises InputError when no row is left."""
    frame, time = _timed(path, (*OPERATOR_COLUMNS, "power_w"))
    watts = frame["power_w"].to_numpy()
    reasons = {
        "no power_w": np.isnan(watts),
        "power_w is 0: not measured": watts == 0,
        "no latency_us": np.isnan(time) & (watts > 0),
    }
    keep = ~np.any(list(reasons.values()), axis=0)
    if not keep.any():
        raise InputError(f"{path}: no row of {len(frame)} has power_w above 0 and latency_us; nothing to compare with")
    skipped = Skipped({reason: int(rows.sum()) for reason, rows in reasons.items() if rows.any()})
    return OperatorTable(str(path), sha256(path), frame[keep].reset_index(drop=True), skipped)


def read_times(path: Path) -> OperatorTable:
    """Read operators with measured time; rows without are counted. Raises InputError when no row is left."""
    frame, time = _timed(path, OPERATOR_COLUMNS)
    keep = ~np.isnan(time)
    if not keep.any():
        raise InputError(f"{path}: no row of {len(frame)} has latency_us; nothing to compare with")
    skipped = counted(np.where(keep, "", "no latency_us"))
    return OperatorTable(str(path), sha256(path), frame[keep].reset_index(drop=True), skipped)


def _timed(path: Path, columns: tuple[str, ...]) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table of operators with ``columns``, its shapes as numbers, and its times [us] (nan: none)."""
    frame = _with_shapes(path, checked(path, _read(path)), columns)
    if "power_w" in frame:
        _refuse_watts(path, "power_w", frame["power_w"].to_numpy())
    return frame, times_us(path, frame)


def tensor_parallel(table: OperatorTable) -> np.ndarray:
    """Return the GPUs that share each layer, by row: the column ``tp``, 1 where it says nothing of any run
    (:func:`notes_of_gpus`); nan in runs without it beside others that have it, which is a wrong cell."""
    frame = table.frame
    tp = frame["tp"].to_numpy() if "tp" in frame else np.full(len(frame), np.nan)
    runs, said = frame["op"].isin(ON_GPUS).to_numpy(), ~np.isnan(tp)
    wrong = runs & ~said & (runs & said).any()
    return np.where(said | wrong, tp, 1.0)


def notes_of_gpus(table: OperatorTable) -> list[str]:
    """Return that runs were taken to be on one GPU each, where a table does not say on how many."""
    runs = table.frame[table.frame["op"].isin(ON_GPUS)]
    if runs.empty or ("tp" in runs and runs["tp"].notna().any()):
        return []
    what = "an empty column tp" if "tp" in runs else "no column tp"
    return [f"{what} (GPUs that share each layer): each of {len(runs)} runs is taken to be on one GPU"]


def has_power(path: Path, operators: Collection[str]) -> bool:
    """Return whether any row of ``operators`` in a table of operators has measured power."""
    frame = _read(path)
    if not {"op", "power_w"} <= set(frame.columns):
        return False
    return bool((frame["op"].isin(list(operators)) & (pd.to_numeric(frame["power_w"], errors="coerce") > 0)).any())


def refuse_one_family(path: str, families: pd.Series) -> None:
    """Refuse a table whose rows are all of one family: nothing could be left out."""
    _refuse_one(path, "shape family", families)


def _read(path: Path, rows: int | None = None) -> pd.DataFrame:
    if is_export(path):
        return read_export(path)
    refuse_foreign(path)
    return bare_names(read_table_file(path, rows))


def _require(path: Path, frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; the table needs {', '.join(columns)}")
    if frame.empty:
        raise InputError(f"{path}: has columns but no rows")


def _with_shapes(path: Path, frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table of operators with every column: those of shapes that none of its operators has stay empty."""
    needed = [c for c in columns if c not in SHAPE_COLUMNS]
    missing = [c for c in needed if c not in frame.columns]
    if missing or not any(set(shape) <= set(frame.columns) for shape in KNOWN_SHAPES):
        found = f"no column {', '.join(missing)}" if missing else "no columns of a shape"
        shapes = "; ".join(", ".join(shape) for shape in KNOWN_SHAPES)
        raise InputError(f"{path}: {found}; the table needs {', '.join(needed)} and its operators' shapes ({shapes})")
    frame = frame.assign(**{c: np.nan for c in SHAPE_COLUMNS if c not in frame.columns})
    _require(path, frame, columns)
    return frame


def _refuse_watts(path: Path, column: str, watts: np.ndarray) -> None:
    for wrong, why in (
        (watts < 0, "power cannot be negative"),
        (watts > MOST_WATTS, "is it in milliwatts? give watts"),
        ((watts > 0) & (watts < LEAST_WATTS), "is it in kilowatts? give watts"),
        (np.isinf(watts), "give a number"),
    ):
        refuse_cells(path, column, watts, wrong, why)


def _refuse_one(path: Path | str, what: str, groups: pd.Series) -> None:
    if groups.nunique() < 2:
        found = "none" if groups.empty else repr(groups.iloc[0])
        raise InputError(f"{path}: needs two benchmarks to leave one out; {what} holds only {found}")
