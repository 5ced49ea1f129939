"""Measured tables for predictors: rows of operators with a time, checked; repeats averaged, others counted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.csv_table import read_table_file, sha256, times_us
from dse.base.errors import InputError, accepted
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.hardware.presets import find_preset, gpu_index, preset_names, preset_sheet
from dse.measured.board_watts import SETTLED_US
from dse.measured.columns import checked, not_modelled
from dse.measured.device_models import device_models, device_names, power_limits
from dse.measured.foreign_files import refuse_foreign
from dse.measured.network_runs.kinds import FORWARD, RUN_SHAPE, RUNS
from dse.measured.row_operator import KERNEL_TILE, WRITES
from dse.measured.row_shape import ATTENTION, ATTENTION_SHAPE, PRODUCT_SHAPE, PRODUCTS, bare_names, why_no_shape
from dse.measured.table import read_operators, tensor_parallel
from dse.prediction.quantities import POWER, TIME, Response
from dse.validation.power import without_power

COLUMNS = ("device", "op", "dtype", "latency_us")
"""Columns that every table has."""

OPTIONAL = ("batch", *PRODUCT_SHAPE, *ATTENTION_SHAPE[1:], "causal", "source", "notes")
"""Columns of shapes and of what else is read."""

SHAPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, PRODUCT_SHAPE),
    **dict.fromkeys(ATTENTION, ATTENTION_SHAPE),
}
"""Operator -> the columns of its shape."""

SHAPES_OF_RUNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(RUNS, ("group", *RUN_SHAPE)),
    FORWARD: ("group", "batch", "seq_q"),
}
FAMILIES_OF_RUNS: dict[str, tuple[str, ...]] = dict.fromkeys(RUNS, ("group", "tp"))
"""The same of runs of whole networks, whose watts are predicted: a network and the GPUs that share it are a family."""

FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("n", "k")),
    **dict.fromkeys(ATTENTION, ("heads", "kv_heads", "head_dim")),
}
"""Operator -> the columns that a network fixes: rows of one family never stand on both sides of a split by family."""

DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
MAD_LIMIT = 7.0
"""Repeats farther than this many median absolute deviations from their median are dropped (O'Neal)."""


@dataclass(frozen=True)
class MeasuredTable:
    """A measured table, checked: its frame, its skipped and its merged rows are all rows of the file."""

    path: str
    sha256: str
    # The file's columns and ``preset``, ``family``, ``shape`` (one text a kernel), ``version`` of the software.
    frame: pd.DataFrame
    skipped: Skipped  # reason -> rows
    merged: int  # rows that repeat another and were averaged with it
    quantity: Response = TIME

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return len(self.frame) + self.skipped.total() + self.merged

    def of(self, device: str) -> pd.DataFrame:
        """Return the rows of a device (any of its names)."""
        return self.frame[self.frame["preset"] == find_preset(device)]


def read_measured(path: Path, quantity: Response = TIME) -> MeasuredTable:
    """Read a table of measured rows of a quantity; raises InputError with the file, the row and the remedy."""
    path = Path(path)
    return _read_watts(path) if quantity is POWER else _read_times(path)


def _read_times(path: Path) -> MeasuredTable:
    refuse_foreign(path)
    frame = checked(path, bare_names(read_table_file(path)))
    _require(path, frame)
    time = times_us(path, frame)
    shapes = {"batch", *(c for columns in SHAPES.values() for c in columns)}
    frame = frame.assign(**dict.fromkeys(sorted(shapes - set(frame.columns)), np.nan))
    reason = _uncovered(frame, time)
    frame = frame[[name for name in frame if name in (*COLUMNS, *OPTIONAL)]]
    return _table(path, sha256(path), frame, reason, counted(reason), TIME)


def _read_watts(path: Path) -> MeasuredTable:
    """Read operators and runs of whole networks with measured power, for as long as the board needs to settle."""
    table = read_operators(path)
    frame = table.frame.assign(tp=tensor_parallel(table), device=device_names(table.frame))
    if "group" not in frame:
        frame = frame.assign(group="")
    models, unknown = device_models(frame, calibration="none")
    reason = without_power(frame, unknown, power_limits(models))
    short = ~frame["op"].isin(RUNS) & (frame["latency_us"] < SETTLED_US)
    why = f"shorter than {SETTLED_US:g} us: the board's power is that of what ran before"
    reason = reason.where((reason != "") | ~short, why)
    return _table(path, table.sha256, frame, reason, table.skipped + counted(reason), POWER)


def _table(
    path: Path, digest: str, frame: pd.DataFrame, reason: pd.Series, skipped: Skipped, quantity: Response
) -> MeasuredTable:
    """Return the rows without a ``reason`` against them, with the columns of :class:`MeasuredTable`."""
    usable = frame[reason == ""].copy()
    if usable.empty:
        raise InputError(f"{path}: no row can be used: {why_skipped(skipped) or 'it has none'}")
    usable["batch"] = usable["batch"].fillna(1.0)
    usable["preset"] = usable["device"].map(lambda name: find_preset(str(name)))
    runs = usable["op"].isin(RUNS).any()  # a table of times has none
    usable["family"] = _joined(usable, FAMILIES | FAMILIES_OF_RUNS if runs else FAMILIES)
    usable["shape"] = _joined(usable, SHAPES | SHAPES_OF_RUNS if runs else SHAPES) + _variant(usable)
    usable["version"] = _version(usable)
    averaged = average_repeats(usable, quantity.column)
    return MeasuredTable(str(path), digest, averaged, skipped, len(usable) - len(averaged), quantity)


def average_repeats(frame: pd.DataFrame, column: str = "latency_us") -> pd.DataFrame:
    """Return a row a measured kernel: repeats beyond 7 median absolute deviations dropped, the cold first run of three
    or more dropped, the rest averaged (O'Neal).

    Repeats are of one kernel, measured one way: their source tells rows apart, too. What comes out stands in one order,
    whatever the table's: folds, samples and a forest's trees go by places.
    """
    keys = ["preset", "op", "dtype", "shape", "version", *({"source"} & set(frame.columns))]
    rows = frame.groupby(keys, sort=False, dropna=False)
    means = rows[column].apply(lambda values: robust_mean(values.to_numpy(float)))
    averaged = rows.head(1).assign(**{column: means.to_numpy()})
    return averaged.sort_values(keys, key=lambda column: column.astype(str)).reset_index(drop=True)


def robust_mean(times: np.ndarray) -> float:
    """Return the mean of repeats in the order they ran, without outliers and, of three or more, without the first."""
    off = np.abs(times - np.median(times))
    near = off <= MAD_LIMIT * np.median(off)
    warm = near & (np.arange(len(times)) > 0)
    return float(times[warm if len(times) > 2 and warm.any() else near].mean())


def generation(preset: str) -> str:
    """Return the architecture of a preset, as Hopper."""
    return gpu_index()[preset]["architecture"]


def _joined(frame: pd.DataFrame, columns: dict[str, tuple[str, ...]]) -> pd.Series:
    names = pd.Series("", index=frame.index)
    for op, parts in columns.items():
        rows = frame["op"] == op
        text = frame.loc[rows, list(parts)].map(_name).agg("_".join, axis=1)
        names[rows] = op + "_" + text if rows.any() else ""
    return names


def shape_names(frame: pd.DataFrame) -> pd.Series:
    """Return the bare shape of rows, "" where an operator has none: whatever the layout, the tile and the software."""
    shapes = {"batch", *(c for columns in SHAPES.values() for c in columns)}
    frame = frame.assign(**dict.fromkeys(sorted(shapes - set(frame.columns)), np.nan))
    batch = frame["batch"].where(frame["batch"].notna(), 1.0).map(_name)
    names = _joined(frame, SHAPES)
    return names.where((names == "") | ~frame["op"].isin(PRODUCTS), names + " x" + batch)


def _name(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


def _version(frame: pd.DataFrame) -> pd.Series:
    """Return the software that was measured, from the notes: "impl=..." or a framework's name with its version."""
    if "notes" not in frame:
        return pd.Series("", index=frame.index)
    notes = frame["notes"].astype("string").fillna("")
    named = notes.str.extract(r"impl=([^;]*)")[0]
    framework = notes.str.extract(r"\b((?:vllm|sglang|trtllm)-[0-9][^;/ ]*)")[0]
    engine = notes.str.extract(r"\bframework=([^;]*)")[0]  # of runs of whole networks
    return named.fillna(framework).fillna(engine).fillna("").astype(str)


def _variant(frame: pd.DataFrame) -> pd.Series:
    """Return what besides its shape tells a row's kernel apart (:func:`dse.measured.row_operator.operator_on`): batch,
    mask, and of the notes the layout of the operands, the tile, and what else the time holds."""
    text = frame["batch"].map(lambda value: f" x{value:.15g}")
    text += frame["causal"].map(lambda value: f" causal={value}") if "causal" in frame else ""
    if "notes" not in frame:
        return text
    notes = frame["notes"].astype("string").fillna("")
    layout = notes.str.findall(r"(?:^|;)([AB]=[NT])(?=;|$)").str.join(";")
    named = layout + notes.str.findall(KERNEL_TILE).astype(str) + notes.str.contains(WRITES, regex=False).astype(str)
    return text + " " + named.astype(str)


def _uncovered(frame: pd.DataFrame, time: np.ndarray) -> pd.Series:
    """Return why each row cannot be used, "" where it can."""
    reason = pd.Series("", index=frame.index)
    checks: dict[str, Callable[[object], str]] = {
        "device": _why_no_gpu,
        "op": lambda op: "" if op in SHAPES else f"no kernel is made for operator {op!r}",
        "dtype": lambda dtype: "" if dtype in DTYPES else f"no kernel is made for data type {dtype!r}",
    }
    for column, why_not in checks.items():
        reasons = {value: why_not(value) for value in frame[column].unique()}
        reason = reason.where(reason != "", frame[column].map(reasons).astype(str))
    reason = reason.where((reason != "") | ~np.isnan(time), "no latency_us")
    known = frame["device"][reason == ""].unique()
    limits = {name: preset_sheet(str(find_preset(name))).numbers()["tdp_w"] for name in known}
    reason = reason.where(reason != "", not_modelled(frame, limits, fits=True))
    for op, columns in SHAPES.items():
        of_op = (reason == "") & (frame["op"] == op)
        reason[of_op] = why_no_shape(frame[of_op], op, columns)
    return reason


def _why_no_gpu(name: object) -> str:
    preset = find_preset(str(name))
    if preset is None:
        return f"no GPU is called {name!r}"
    return "" if preset in preset_names() else f"device {name!r}: {gpu_index()[preset]['note']}"


def _require(path: Path, frame: pd.DataFrame) -> None:
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise InputError(
            f"{path}: no column {', '.join(missing)}; the table needs {', '.join(COLUMNS)} and the columns of the "
            "operators' shapes (m, n, k; batch, heads, kv_heads, head_dim, seq_q, seq_kv)"
        )
    if frame.empty:
        raise InputError(f"{path}: has columns but no rows")


def target_preset(table: MeasuredTable, name: str, option: str) -> str:
    """Return the preset of a device that the table holds; raises InputError where it holds none of it."""
    present = sorted(set(table.frame["preset"]))
    preset = find_preset(name)
    if preset is None or preset not in present:
        if preset is None:
            raise InputError(f"{option}: no GPU is called {name!r}; {accepted(name, present)}")
        what = "watts" if table.quantity is POWER else "times"
        skipped = f" (rows that were skipped: {why_skipped(table.skipped)})" if table.skipped else ""
        raise InputError(
            f"{option}: {table.path} holds no {what} of {name!r} that can be used; it holds those of "
            f"{', '.join(present)}{skipped}"
        )
    return preset
