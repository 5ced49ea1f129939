"""``dse calibrate timing``: a GPU's sustained rates and costs from measured products, written with provenance."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import jax
import numpy as np
import pandas as pd

from dse.calibrate.device_models import device_names
from dse.calibrate.launches import family
from dse.calibrate.measured import OperatorTable, read_times
from dse.calibrate.residuals import errors_of, listed, seen
from dse.calibrate.stages import StagedFit, StageResult, staged_fit
from dse.calibrate.timed import TimedRows, blocks, joined
from dse.calibrate.timing_fit import DETERMINED, parameters
from dse.errors import InputError
from dse.hardware.own_gpus import own_gpus, own_lines
from dse.hardware.presets import GpuSheet, find_preset, load_sheet
from dse.timing.calibration import FORMAT, SHARED, Residual, TimingCalibration, load_timing_calibration
from dse.workload.harness import Harness, find_harness
from dse.workload.implementation import KINDS

FITTED_OPERATORS = ("gemm",)
FITTED_DTYPES = ("bf16", "fp16")
"""What a calibration is fitted on; other rows are skipped and counted."""

LEFT_OUT = 7
"""Shape families whose CRC-32 ends in this decimal digit or a higher one are left out of the fit."""

FEWEST = 8
"""Rows that a calibration needs at least."""

ENOUGH = 100
"""Rows from which on families are left out of the fit to judge it; with fewer, all are fitted, and the errors of the
calibration it starts from stand for its own."""

FAR_OFF = 3.0
"""Predicted over measured beyond which no parameters of a GPU explain the fitted rows' median."""

MOST_ROWS = 1500
"""Rows of a device that are used at most, fitted and left-out ones each, drawn at random with a fixed seed."""


@dataclass(frozen=True)
class TimingAnswer:
    """A fitted calibration: what it was fitted on, errors stage by stage, coefficients and errors on left-out rows."""

    name: str
    gpus: tuple[str, ...]
    tables: tuple[OperatorTable, ...]
    rows: int
    rows_left_out: int
    harnesses: dict[str, float]
    fit: StagedFit
    residuals: tuple[Residual, ...]
    skipped: dict[str, int]
    implementation: str = "matrix"
    own: tuple[GpuSheet, ...] = ()

    def coefficients(self) -> list[dict[str, Any]]:
        """Return the parameters with unit, 95 % interval, share of the answer that is the rows', stage and words."""
        known = self.fit.known
        units = {p.name: (p.unit, p.stage) for p in parameters(KINDS[self.implementation])}
        rows = zip(known.names, known.share, known.low, known.high, known.bound, strict=True)
        return [
            {"name": name, "value": self.fit.values[name], "unit": units[name][0], "low": float(low),
             "high": float(high), "data_share": float(share), "stage": units[name][1],
             "determined": bool(share >= DETERMINED), "at_bound": bool(bound)}
            for name, share, low, high, bound in rows
        ]  # fmt: skip

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse calibrate timing --json``."""
        return {
            "name": self.name, "implementation": self.implementation, "gpus": list(self.gpus), "model": "amali",
            "tables": [{"name": Path(t.path).name, "sha256": t.sha256} for t in self.tables],
            "rows": self.rows, "rows_left_out": self.rows_left_out, "harnesses": self.harnesses,
            "stages": [asdict(stage) for stage in self.fit.stages],
            "parameters": self.coefficients(), "undetermined": list(self.fit.undetermined),
            "at_bounds": list(self.fit.at_bounds), "residuals": [asdict(r) for r in self.residuals],
            "rows_skipped": self.skipped,
        }  # fmt: skip

    def write(self, path: Path) -> None:
        """Write the calibration as TOML; but for the date the same fit gives the same bytes."""
        document = self.document()
        head = {
            key: document[key]
            for key in ("name", "implementation", "model", "gpus", "rows", "rows_left_out", "at_bounds")
        }
        head = {"format": FORMAT} | head | {"undetermined": document["undetermined"]}
        if self.rows_left_out:
            head |= {"left_out": f"shape families whose CRC-32 modulo 10 is {LEFT_OUT} or more"}
        else:
            none = "none: too few rows or shape families; the errors below are those of the calibration it started from"
            head |= {"left_out": none}
        head |= {"date": datetime.now(UTC).date().isoformat(), "jax": jax.__version__}
        lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
        lines += ["", listed(self.residuals).rstrip()]
        lines += ["", "[harnesses] # overhead [us]", *(f"{k} = {v:.6g}" for k, v in self.harnesses.items())]
        for row in document["parameters"]:
            if row["name"] != "overhead_us":
                lines += ["", f"[parameters.{row['name']}]"]
                lines += [f"{key} = {_toml(value)}" for key, value in row.items() if key != "name"]
        for key in ("tables", "stages"):
            for row in document[key]:
                lines += ["", f"[[{key}]]"]
                lines += [f"{k} = {_toml(v)}" for k, v in row.items() if v is not None]
        lines += own_lines(self.own)
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def calibrate_timing(gpu: str, tables: Sequence[Path], harness: str | None = None,
                     report: Callable[[StageResult], None] | None = None) -> TimingAnswer:  # fmt: skip
    """Fit the timing model to the rows of one GPU; raises InputError when there are too few.

    ``gpu``: a preset, whose rows are taken, or a GPU TOML, for which the tables must hold one device only. ``harness``:
    how everything was measured; None goes by the column ``source``.
    """
    sheet = load_sheet(gpu)
    read = [read_times(Path(table)) for table in tables]
    if not read:
        raise InputError("calibrate timing: no table is given; give one or more measured tables")
    frame = pd.concat([t.frame for t in read], ignore_index=True)
    frame = frame.assign(device=device_names(frame))
    way = find_harness(harness) if harness else None
    mine, skipped = _of_device(frame, sheet, gpu)
    sheets = {str(device): sheet for device in mine["device"].unique()}
    return fit_tables(sheet.name, read, mine, sheets, way, skipped, report=report)


def _of_device(frame: pd.DataFrame, sheet: GpuSheet, gpu: str) -> tuple[pd.DataFrame, dict[str, int]]:
    devices = [str(device) for device in frame["device"].unique()]
    if Path(gpu).suffix == ".toml":
        if len(devices) > 1:
            raise InputError(f"{gpu}: the tables hold {len(devices)} devices ({', '.join(devices)}); give rows of one")
        return frame, {}
    mine = frame["device"].map({d: find_preset(d) == sheet.name for d in devices}).astype(bool)
    if not mine.any():
        raise InputError(
            f"{gpu}: the tables have no row of it; they hold {', '.join(devices)}. For a GPU that is not shipped, give "
            'a GPU TOML instead (base = "h100_sxm" and what differs) and tables of that one device'
        )
    others = [d for d in devices if find_preset(d) != sheet.name]
    return frame[mine], {f"device {d!r} is another GPU": int((frame["device"] == d).sum()) for d in others}


def fit_tables(name: str, tables: Sequence[OperatorTable], frame: pd.DataFrame, sheets: Mapping[str, GpuSheet],
               harness: Harness | None, skipped: dict[str, int] | None = None,
               report: Callable[[StageResult], None] | None = None) -> TimingAnswer:  # fmt: skip
    """Fit one set of parameters to the rows of ``frame``, of the devices of ``sheets`` (device -> GPU)."""
    counts = dict(skipped or {})
    for table in tables:
        for reason, n in table.skipped.items():
            counts[reason] = counts.get(reason, 0) + n
    again = frame.duplicated()  # a table given twice says no more than once: intervals count its rows
    if again.any():
        counts["repeats another row in every column"] = int(again.sum())
    rows = load_timed(frame[~again], sheets, harness, counts)
    gpus = tuple(sorted({sheet.name for sheet in sheets.values()}))
    shared = load_timing_calibration(SHARED)
    fitted = fit_timed(name, tables, gpus, rows, counts, report=report, start=shared.values, near=shared)
    return replace(fitted, own=own_gpus(sheets.values()))


def fit_timed(name: str, tables: Sequence[OperatorTable], gpus: tuple[str, ...], rows: TimedRows,
              skipped: dict[str, int] | None = None, fit_overhead: bool = False,
              report: Callable[[StageResult], None] | None = None, implementation: str = "matrix",
              start: dict[str, float] | None = None, near: TimingCalibration | None = None,
              ) -> TimingAnswer:  # fmt: skip
    """Fit one set of parameters to rows with their kernels, all of one ``implementation``.

    ``fit_overhead``: of one harness on several GPUs. ``start``: values about which the priors stand.
    ``near``: a calibration whose errors stand for those of a fit to few rows, or to families that all are left out or
    none: it leaves out no row.
    """
    if len(rows.table) < FEWEST:
        raise InputError(
            f"calibrate timing: {len(rows.table)} rows can be fitted; give at least {FEWEST} rows of "
            f"{', '.join(FITTED_OPERATORS)} in {' or '.join(FITTED_DTYPES)}"
        )
    out = left_out(rows.table["family"])
    few = near is not None and (len(rows.table) < ENOUGH or out.all() or not out.any())
    out = np.zeros(len(rows.table), bool) if few else out
    fit = staged_fit(rows, out, fit_overhead, report=report, kind=KINDS[implementation], start=start)
    _refuse_far_off(fit.predicted_us[~out] / rows.table["latency_us"].to_numpy()[~out])
    overheads = rows.table.groupby("harness")["overhead_us"].first().to_dict()
    if fit_overhead:
        overheads = dict.fromkeys(overheads, fit.values["overhead_us"])
    only = gpus[0] if len(gpus) == 1 else ""
    judged = errors_of(rows.table, fit.predicted_us, only).assign(implementation=implementation, out=out)
    errors = seen(judged[out], set(judged["way"]), set(judged["gpu"]))
    if near is not None and few:
        errors = tuple(r for r in near.residuals if r.implementation == implementation)
    return TimingAnswer(
        name, gpus, tuple(tables), int((~out).sum()), int(out.sum()),
        {str(k): float(v) for k, v in overheads.items()}, fit, errors, dict(skipped or {}), implementation,
    )  # fmt: skip


def _refuse_far_off(ratio: np.ndarray) -> None:
    """Refuse a fit that is wrong by a factor in the median: the times are in another unit, or of another GPU."""
    median = float(np.median(ratio))
    if not 1 / FAR_OFF < median < FAR_OFF:
        raise InputError(
            f"calibrate timing: fitted, the median of predicted over measured times is {median:.3g}: is latency_us in "
            "microseconds, and are the rows of this GPU?"
        )


def left_out(families: Iterable[str]) -> np.ndarray:
    """Return which rows no fit may see, by the name of their shape family."""
    return np.array([crc32(name.encode()) % 10 >= LEFT_OUT for name in families])


def load_timed(frame: pd.DataFrame, sheets: Mapping[str, GpuSheet], harness: Harness | None,
               skipped: dict[str, int], most: int = MOST_ROWS) -> TimedRows:  # fmt: skip
    """Return the rows that a fit can use with their kernels, at most ``most`` fitted and left-out ones of a device."""
    wrong = pd.Series("", index=frame.index)
    wrong[~frame["op"].isin(FITTED_OPERATORS)] = "operator is not fitted: " + frame["op"].astype(str)
    other = ~frame["dtype"].isin(FITTED_DTYPES) & (wrong == "")
    wrong[other] = "data type is not fitted: " + frame["dtype"].astype(str)
    shape = frame[["m", "n", "k"]]
    wrong[~(shape > 0).all(axis=1) & (wrong == "")] = "gemm without its m, n, k"
    wrong[(shape % 1 != 0).any(axis=1) & (wrong == "")] = "gemm whose m, n, k are not whole"
    for reason, n in wrong[wrong != ""].value_counts().items():
        skipped[str(reason)] = skipped.get(str(reason), 0) + int(n)
    usable = frame[wrong == ""]
    out = left_out(pd.Series([family(row) for row in usable.itertuples()], dtype=str))
    drawn = [part.sample(min(most, len(part)), random_state=0)
             for _, part in usable.groupby([usable["device"].to_numpy(), out])]  # fmt: skip
    if sum(map(len, drawn)) < len(usable):
        reason = f"beyond {most} rows of a device, drawn at random"
        skipped[reason] = skipped.get(reason, 0) + len(usable) - sum(map(len, drawn))
    parts = list(blocks(pd.concat(drawn), sheets, harness, skipped)) if drawn else []
    if not parts:
        raise InputError(
            "calibrate timing: no row can be fitted: " + "; ".join(f"{r} ({n})" for r, n in skipped.items())
        )
    return joined(parts)
