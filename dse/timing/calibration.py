"""Calibrations of the timing model: TOML files with coefficients, where they come from, and errors on unseen rows.

A GPU's file holds what its matrix products sustain and cost. Every other implementation has a file of its own, fitted
on several GPUs, whose coefficients and errors join those of whichever GPU is asked for, unless the GPU's file has a fit
of its own to that implementation (:mod:`dse.calibrate.gpu_timing` writes such).
"""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from math import exp
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dse.errors import InputError, accepted
from dse.hardware.own_gpus import known_as, read_own
from dse.hardware.presets import GpuSheet, alike, find_preset, preset_sheet
from dse.tables import read_table
from dse.timing.amali import Amali
from dse.timing.launch import LaunchLatency
from dse.timing.sustained import Sustained
from dse.toml_file import check_format, coefficient, read_toml
from dse.toml_text import inline
from dse.uncertainty import Uncertainty
from dse.workload.implementation import IMPLEMENTATIONS, KINDS

FORMAT = "dse timing calibration 2"

MATRIX = "matrix"
"""The implementation that a GPU's own file is of: matrix products of a tuned library."""

SHARED = "shared"
"""The shipped calibration of a GPU that nobody has measured."""

LAUNCH = {"launch_k": "k", "launch_gamma": "gamma"}
"""Parameter of a calibration -> coefficient of the launch latency; its alpha and beta are 0."""

TWINS = {"bf16": "fp16", "fp16": "bf16"}
"""Data types with the same rates and bytes: a calibration on one covers the other."""

LEAST_ROWS = 20
"""Left-out rows that an interval must rest on; with fewer, a wider group of rows serves."""

UNSEEN = "unseen"
"""In place of a GPU: one that no fit has seen in this way of measuring; such a one with few watts for its fp32 rate."""

POWERED = "+power"
"""Ends the name of a way of measuring whose loops are long enough to read the board's power: its clock is sustained."""


@dataclass(frozen=True)
class Residual:
    """Log errors log(predicted / measured) of left-out rows: their 10, 50 and 90 % quantiles, and how many rows.

    ``gpu``: the preset that was measured, UNSEEN for others, "" for the measured ones together; ``way`` of
    measuring, "" for any; ``fitted``: whether rows of this type, GPU and way were fitted, or only judged.
    """

    implementation: str
    op: str
    dtype: str
    regime: str
    n: int
    q10: float
    q50: float
    q90: float
    gpu: str = ""
    way: str = ""
    fitted: bool = True


def line_of(residual: Residual) -> str:
    """Return a residual as an inline table of TOML."""
    return inline(asdict(residual), 5)


@dataclass(frozen=True)
class TimingCalibration:
    """A calibration read back: the model with its coefficients, what it was fitted on, and how far off it was.

    ``own``: GPUs of the fit that are no presets. ``like``: the shipped calibration whose matrix products it has, "" for
    its own. ``fits``: fits of other implementations in the same file, by implementation.
    """

    name: str
    model: Amali
    values: dict[str, float]
    gpus: tuple[str, ...]
    overheads: dict[str, float]
    residuals: tuple[Residual, ...]
    own: tuple[GpuSheet, ...] = ()
    like: str = ""
    fits: Mapping[str, "TimingCalibration"] = field(default_factory=dict)

    def fitted_on(self, sheet: GpuSheet) -> bool:
        """Whether a GPU is one that it was fitted on; SHARED stands for any."""
        return self.name == SHARED or bool(known_as(sheet, self.gpus, self.own))

    def called(self, sheet: GpuSheet) -> str:
        """Return the name by which the errors of a GPU are kept."""
        return known_as(sheet, self.gpus, self.own) or sheet.name

    def said_of(self, sheet: GpuSheet) -> "TimingCalibration":
        """Return the calibration without the errors that are not said of a GPU: those on GPUs that no fit has seen are
        of SHARED, and no fit to another GPU has them; those of a user's own are of no other of the same name."""
        if self.fitted_on(sheet):
            return self
        mine = {one.name for one in self.own}
        kept = (r for r in self.residuals if r not in _shared_residuals() and r.gpu not in mine)
        return replace(self, residuals=tuple(kept))

    def covers(self, implementation: str, op: str, dtype: str) -> bool:
        """Whether rows of this implementation, operator and data type were among those it was fitted on."""
        mine = (r for r in self.residuals if (r.implementation, r.op) == (implementation, op) and r.fitted)
        return any(r.dtype in (dtype, TWINS.get(dtype)) for r in mine)

    def residual(
        self, implementation: str, op: str, dtype: str, regime: str, gpu: str = "", way: str = ""
    ) -> Residual | None:
        """Return the errors to expect of a regime of predicted time, else of all, None where nothing is known.

        Of ``gpu`` in this ``way`` of measuring, where it was measured so; with too few rows, of all that were; else of
        GPUs that no fit has seen.
        """
        mine = [r for r in self.residuals if (r.implementation, r.op) == (implementation, op)]
        mine = [r for r in mine if r.dtype in (dtype, TWINS.get(dtype))]
        measured = any((r.gpu, r.way) == (gpu, way) for r in mine)
        places = [(gpu, way), ("", way)] if measured else []
        places += [(UNSEEN, there) for there in (way, "")]
        known = {(r.gpu, r.way, r.dtype, r.regime): r for r in mine if r.n >= LEAST_ROWS}
        choices = [(*place, kind, wanted) for place in places for wanted in (regime, "all") for kind in _kinds(dtype)]
        return next((known[choice] for choice in choices if choice in known), None)


def _kinds(dtype: str) -> tuple[str, str]:
    return dtype, TWINS.get(dtype, dtype)


def shipped_calibrations() -> dict[str, Path]:
    """Return the shipped calibrations of GPUs by name."""
    return _tomls("calibration")


def calibration_for(gpu: str) -> str:
    """Return the name of the shipped calibration of a GPU (a preset, or anything else): its own, else SHARED."""
    preset = find_preset(gpu)
    return preset if preset is not None and preset in shipped_calibrations() else SHARED


def calibration_of(*sheets: GpuSheet) -> str:
    """Return the shipped calibration of a GPU: its own if its numbers are a measured preset's, else SHARED; of several
    GPUs, which are compared by one calibration, SHARED unless they have the same."""

    names = {_own(sheet) for sheet in sheets}
    return names.pop() if len(names) == 1 else SHARED


def _own(sheet: GpuSheet) -> str:
    name = calibration_for(sheet.name)
    return name if name != SHARED and alike(sheet, preset_sheet(name)) else SHARED


def passed_over(*sheets: GpuSheet) -> str:
    """Return a sentence where :func:`calibration_of` takes SHARED although a GPU, or the one it was made from, has a
    calibration of its own: by that it was, or will be, timed elsewhere. "" where nothing was passed over."""
    if calibration_of(*sheets) != SHARED:
        return ""
    if len(sheets) != 1:
        alone = ", ".join(f"{sheet.title} by {_own(sheet)}" for sheet in sheets if _own(sheet) != SHARED)
        return (
            f"both are timed by the calibration {SHARED}, for any GPU; alone 'dse run' times {alone}" if alone else ""
        )
    sheet = sheets[0]
    name = calibration_for(sheet.base or sheet.name)
    if name == SHARED:
        return ""
    return (
        f"{sheet.title} is timed by the calibration {SHARED}, for GPUs that nobody has measured; hold it against "
        f"'dse run {name} ... --calibration {SHARED}', not against {name}'s own calibration"
    )


def shipped_implementations() -> dict[str, Path]:
    """Return the shipped calibrations of implementations by the implementation's name."""
    return _tomls("calibration", "implementations")


def _tomls(*folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted(Path(str(files("dse").joinpath("data", *folder))).glob("*.toml"))}


def load_timing_calibration(path_or_name: str | Path, where: str = "calibration") -> TimingCalibration:
    """Read a GPU's calibration by path, or a shipped one by name, with the shipped ones of all implementations.

    Raises InputError naming file, key, value and remedy.
    """
    path, file = Path(path_or_name), Path(path_or_name).name
    if path.suffix != ".toml":
        file = ""
        shipped = shipped_calibrations()
        if str(path_or_name) not in shipped:
            hint = accepted(str(path_or_name), shipped)
            raise InputError(
                f"{where}: no calibration is called {str(path_or_name)!r}; {hint} (or the path of a .toml)"
            )
        path = shipped[str(path_or_name)]
    own = _calibration(path, read_toml(path))
    shipped = {name: implementation_calibration(name) for name in shipped_implementations()}
    others = shipped | {name: _with_unseen(fit, shipped[name]) for name, fit in own.fits.items()}
    told = ", ".join(filter(None, (own.model.calibrated_on, file)))  # a file of one's own is not taken for the shipped
    model = composed({name: other.values for name, other in others.items()}, own.values, told)
    residuals = own.residuals + tuple(r for other in others.values() for r in other.residuals)
    if own.name != SHARED:
        residuals += tuple(r for r in _shared_residuals() if r.gpu == UNSEEN)
    return replace(own, model=replace(model, errors=_errors(own)), residuals=residuals)


def _with_unseen(fit: TimingCalibration, shipped: TimingCalibration) -> TimingCalibration:
    """A GPU's own fit of an implementation, with the shipped one's errors on GPUs that no fit has seen."""
    return replace(fit, residuals=fit.residuals + tuple(r for r in shipped.residuals if r.gpu == UNSEEN))


@cache
def _shared_residuals() -> tuple[Residual, ...]:
    path = shipped_calibrations()[SHARED]
    return _calibration(path, read_toml(path)).residuals


def _errors(calibration: TimingCalibration) -> Uncertainty | None:
    """What a time may be off by: the errors of matrix products that no fit has seen, which rule most workloads."""
    mine = [r for r in calibration.residuals if (r.implementation, r.op, r.regime) == (MATRIX, "gemm", "all")]
    mine = [r for r in mine if r.dtype in TWINS and r.fitted]
    known = max(mine, key=lambda r: (r.dtype == "bf16", r.n), default=None)
    if known is None or known.n < LEAST_ROWS:
        return None
    # A fit to a few rows leaves none out: the errors of GPUs that the shared one has not seen stand for its own.
    unseen = known.gpu == UNSEEN
    source = f"matrix products {'on GPUs' if unseen else 'in shapes'} left out of the fit of "
    source += SHARED if unseen else calibration.like or calibration.name
    anywhere = calibration.name == SHARED
    return Uncertainty(exp(-known.q90), exp(-known.q10), source, calibration.gpus, anywhere, calibration.own)


@cache
def implementation_calibration(name: str) -> TimingCalibration:
    """Read the shipped calibration of an implementation."""
    path = shipped_implementations()[name]
    return _calibration(path, read_toml(path))


def composed(implementations: Mapping[str, Mapping[str, float]], values: Mapping[str, float], name: str) -> Amali:
    """Return the timing model whose coefficients hold a value for each implementation: ``values`` where none is known.

    ``implementations``: name -> values of all parameters.
    """
    models = [calibrated_model(implementations.get(i, values), name) for i in IMPLEMENTATIONS]
    return jax.tree.map(lambda *x: np.array(x, float), *models)


def _calibration(path: Path, content: dict[str, Any]) -> TimingCalibration:
    check_format(path, content, FORMAT, "dse calibrate timing")
    name = content.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{path}: name is {name!r}; give a text")
    gpus = tuple(str(g) for g in _list(path, content, "gpus"))
    of_all = (name, gpus, read_own(content, str(path)))
    fits = _fits(path, content, of_all)
    if "like" not in content:
        return replace(_fit(path, content, of_all), fits=fits)
    like = content["like"]
    if like not in shipped_calibrations():
        raise InputError(f"{path}: like is {like!r}; {accepted(str(like), shipped_calibrations())}")
    products = _calibration(shipped_calibrations()[like], read_toml(shipped_calibrations()[like]))
    model = replace(products.model, calibrated_on=f"{name} (products as {like})")
    return replace(products, name=name, model=model, gpus=gpus, own=of_all[2], like=like, fits=fits)


def _fit(path: Path, content: dict[str, Any], of_all: tuple[str, tuple[str, ...], tuple[GpuSheet, ...]],
         implementation: str = "") -> TimingCalibration:  # fmt: skip
    """Read the fit of one implementation; ``of_all``: name, GPUs and own GPUs of the file."""
    name, gpus, own = of_all
    kind = implementation or content.get("implementation", MATRIX)
    values = _values(path, content.get("parameters"), _neutral(path, kind))
    residuals = tuple(_residual(path, row) for row in _list(path, content, "residuals"))
    residuals = tuple(replace(r, implementation=implementation or r.implementation) for r in residuals)
    overheads = {h: coefficient(path, f"harnesses.{h}", v) for h, v in _table(path, content, "harnesses").items()}
    return TimingCalibration(name, calibrated_model(values, name), values, gpus, overheads, residuals, own)


def _fits(path: Path, content: dict[str, Any], of_all: tuple[str, tuple[str, ...], tuple[GpuSheet, ...]]
          ) -> dict[str, TimingCalibration]:  # fmt: skip
    """Read a file's fits of other implementations; one that serves several (``also``) is each one's."""
    found = {}
    for name, fit in _table(path, content, "implementations").items():
        if not isinstance(fit, dict):
            raise InputError(f"{path}: implementations.{name} is {fit!r}; give a table")
        for each in (name, *_list(path, fit, "also")):
            if each not in shipped_implementations():
                hint = accepted(str(each), shipped_implementations())
                raise InputError(f"{path}: implementations.{name}: {each!r} is no implementation; {hint}")
            found[each] = _fit(path, fit, of_all, each)
    return found


def calibrated_model(values: Mapping[str, Any], name: str) -> Amali:
    """Return the timing model with the values (numbers or arrays) of a calibration's parameters, all of them given."""
    launch = LaunchLatency(**{LAUNCH[k]: values[k] for k in LAUNCH}, alpha=0.0, beta=0.0)
    sustained = {f.name: values[f.name] for f in fields(Sustained)}
    return Amali(launch=launch, sustained=Sustained(**sustained), calibrated_on=name)


def _neutral(path: Path, implementation: Any) -> dict[str, float]:
    """Values of the parameters that no implementation of this kind has."""
    if implementation not in KINDS:
        raise InputError(f"{path}: implementation is {implementation!r}; {accepted(str(implementation), KINDS)}")
    fitted = {row["parameter"] for row in read_table(f"calibration/priors/{KINDS[implementation]}.csv")}
    values = {name: value for name, value in asdict(Sustained()).items() if value is not None}
    return {name: float(value) for name, value in values.items() if name not in fitted}


def _values(path: Path, rows: Any, neutral: dict[str, float]) -> dict[str, float]:
    """Every parameter; those that a kind of implementation does not have keep their ``neutral`` value."""
    known = (*LAUNCH, *(f.name for f in fields(Sustained)))
    rows = rows if isinstance(rows, dict) else {}
    for name in rows:
        if name not in known:
            raise InputError(f"{path}: parameters.{name} is not a parameter of the model; {accepted(name, known)}")
    missing = [name for name in known if name not in rows and name not in neutral]
    if missing:
        raise InputError(f"{path}: no table [parameters.{missing[0]}]; give each of {', '.join(known)} a value")
    return neutral | {
        name: coefficient(path, f"parameters.{name}.value", row.get("value") if isinstance(row, dict) else row)
        for name, row in rows.items()
    }


def _list(path: Path, content: dict[str, Any], key: str) -> list[Any]:
    found = content.get(key, [])
    if not isinstance(found, list):
        raise InputError(f"{path}: {key} is {found!r}; give a list")
    return found


def _table(path: Path, content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: {key} is {found!r}; give a table")
    return found


def _residual(path: Path, row: Any) -> Residual:
    keys = [f.name for f in fields(Residual)]
    needed = {f.name for f in fields(Residual) if f.default is MISSING}
    if not isinstance(row, dict) or not needed <= set(row) <= set(keys):
        raise InputError(f"{path}: a table of residuals is {row!r}; give {', '.join(keys)}")
    return Residual(**row)
