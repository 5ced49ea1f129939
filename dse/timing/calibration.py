"""Calibrations of the timing model: TOML files with coefficients, where they come from, and errors on unseen rows.

A GPU's file holds what its matrix products sustain and cost. Every other implementation has a file of its own, fitted
on several GPUs, whose coefficients and errors join those of whichever GPU is asked for, unless the GPU's file has a fit
of its own to that implementation (:mod:`dse.calibration.timing.gpu_timing` writes such).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from math import exp
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dse.base.error_interval import ErrorInterval
from dse.base.errors import InputError, accepted
from dse.base.kept.user_cache import STORE, read_tomls
from dse.base.package_tables import read_table
from dse.base.toml_file import check_format, coefficient, list_of, read_toml, refuse_keys, table_of
from dse.hardware.own_gpus import TABLE as OWN_GPUS
from dse.hardware.own_gpus import matching_name, preset_of, read_own, sheets_of
from dse.hardware.presets import GpuSheet, find_preset, gpu_index
from dse.timing.amali import Amali
from dse.timing.discrepancy import Points, read_points
from dse.timing.discrepancy import composed as composed_discrepancy
from dse.timing.error_quantiles import ErrorQuantiles, read_error_quantiles
from dse.timing.launch import LaunchLatency
from dse.timing.novelty import NOTHING_NEW, Novelty, novelty
from dse.timing.parameters import LAUNCH, read_parameters, values_before_fits
from dse.timing.sustained import Sustained
from dse.timing.work import composed as composed_work
from dse.timing.work import read_work
from dse.workload.implementation import IMPLEMENTATIONS, KINDS

FORMAT = "dse timing calibration 2"

MATRIX = "matrix"
"""The implementation that a GPU's own file is of: matrix products of a tuned library."""

SHARED = "shared"
"""The shipped calibration of a GPU that nobody has measured."""

PRIORS = "priors"
"""The calibration that nothing was fitted to: what is known of a kind of kernel before one is measured."""

MODEL = "amali"
"""``model`` of a file: the one timing model that has calibrations."""

HEAD = ("format", "name", "model", "gpus", "date", "jax", "like", "implementations", "tables", OWN_GPUS)
FIT = ("implementation", "also", "rows", "rows_left_out", "at_bounds", "undetermined", "left_out", "residuals",
       "harnesses", "work", "discrepancy", "parameters", "stages")  # fmt: skip
"""Keys of a file: of the whole, and of each fit; that of products stands beside the head."""

TWINS = {"bf16": "fp16", "fp16": "bf16"}
"""Data types with the same rates and bytes: a calibration on one covers the other."""

LEAST_ROWS = 20
"""Left-out rows that an interval must rest on; with fewer, a wider group of rows serves."""

UNSEEN = "unseen"
"""In place of a GPU: one that no fit has seen under this protocol; such a one with few watts for its fp32 rate."""

POWERED = "+power"
"""Ends the name of a protocol whose loops are long enough to read the board's power: its clock is sustained."""


@dataclass(frozen=True)
class TimingCalibration:
    """A calibration read back: the model with its coefficients, what it was fitted on, and how far off it was.

    ``own``: GPUs of the fit that are no presets. ``like``: the shipped calibration whose matrix products it has, "" for
    its own. ``fits``: fits of other implementations in the same file, by implementation. ``discrepancy``: what the
    equations leave of its rows.
    """

    name: str
    model: Amali
    values: dict[str, float]
    gpus: tuple[str, ...]
    overheads: dict[str, float]
    error_quantiles: tuple[ErrorQuantiles, ...]
    own: tuple[GpuSheet, ...] = ()
    like: str = ""
    fits: Mapping[str, "TimingCalibration"] = field(default_factory=dict)
    discrepancy: Points | None = field(default=None, compare=False)  # the model's own is compared

    def fitted_on(self, sheet: GpuSheet) -> bool:
        """Whether a GPU is one that it was fitted on; SHARED stands for any."""
        return self.name == SHARED or bool(matching_name(sheet, self.gpus, self.own))

    def not_fitted_on(self, *sheets: GpuSheet) -> str:
        """Return a sentence that names those of the GPUs that it was not fitted on, "" where it was on all."""
        if self.name == PRIORS:
            return f"calibration {PRIORS} holds what fits begin with and is fitted to nothing"
        others = [sheet for sheet in sheets if not self.fitted_on(sheet)]
        told = ", ".join(f"{s.title}{' as it is now' if s.name in self.gpus else ''}" for s in others)
        return (
            f"calibration {self.name} was fitted on {', '.join(self.gpus) or 'no named GPU'}, not on {told}"
            if others
            else ""
        )

    def called(self, sheet: GpuSheet) -> str:
        """Return the name by which the errors of a GPU are kept: a preset's only where it is known as it."""
        changed = f"{sheet.name}, changed" if sheet.name in gpu_index() else sheet.name
        return matching_name(sheet, self.gpus, self.own) or preset_of(sheet) or changed

    def new_of(self, sheet: GpuSheet, implementation: str) -> Novelty:
        """Return what of a GPU is new to the fit of an implementation: of products that of SHARED."""
        if implementation in shipped_implementations():
            fit = self.fits.get(implementation) or implementation_calibration(implementation)
            others = implementation_calibration(implementation).gpus
            names, own = {*fit.gpus, *others}, fit.own
        else:
            names, own = {*self.gpus, *_shared().gpus}, self.own
        return NOTHING_NEW if matching_name(sheet, names, own) else novelty(sheet, sheets_of(names, own).values())

    def said_of(self, sheet: GpuSheet) -> "TimingCalibration":
        """Return the calibration without the errors that are not said of a GPU: those on GPUs that no fit has seen are
        of SHARED, and no fit to another GPU has them; those of a user's own are of no other of the same name."""
        if self.fitted_on(sheet):
            return self
        mine = {one.name for one in self.own}
        kept = (r for r in self.error_quantiles if r not in _shared_quantiles() and r.gpu not in mine)
        return replace(self, error_quantiles=tuple(kept))

    def covers(self, implementation: str, op: str, dtype: str) -> bool:
        """Whether rows of this implementation, operator and data type were among those it was fitted on."""
        mine = (r for r in self.error_quantiles if (r.implementation, r.op) == (implementation, op) and r.fitted)
        return any(r.dtype in (dtype, TWINS.get(dtype)) for r in mine)

    def quantiles(
        self, implementation: str, op: str, dtype: str, regime: str, gpu: str = "", way: str = ""
    ) -> ErrorQuantiles | None:
        """Return the errors to expect of a regime of predicted time, else of all, None where nothing is known.

        Of ``gpu`` in this ``way`` of measuring, where it was measured so; with too few rows, of all that were; else of
        GPUs that no fit has seen.
        """
        mine = [r for r in self.error_quantiles if (r.implementation, r.op) == (implementation, op)]
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
    """Return the shipped calibration of a GPU: its own if its numbers are a measured preset's
    (:func:`matching_name`), else SHARED; of several GPUs, which are compared by one calibration, SHARED unless they
    have the same."""
    names = {_own(sheet) for sheet in sheets}
    return names.pop() if len(names) == 1 else SHARED


def _own(sheet: GpuSheet) -> str:
    """Return the calibration of the preset with a GPU's numbers, whatever it is called, else SHARED."""
    return matching_name(sheet, shipped_calibrations(), ()) or SHARED


def passed_over(*sheets: GpuSheet) -> str:
    """Return a sentence where :func:`calibration_of` takes SHARED although a GPU, or the one it was made from, has a
    calibration of its own: by that it was, or will be, timed elsewhere. "" where nothing was passed over."""
    if calibration_of(*sheets) != SHARED:
        return ""
    if len(sheets) != 1:
        alone = ", ".join(f"{sheet.title} by {_own(sheet)}" for sheet in sheets if _own(sheet) != SHARED)
        return f"all are timed by the calibration {SHARED}, for any GPU; alone 'dse run' times {alone}" if alone else ""
    sheet = sheets[0]
    name = calibration_for(sheet.base or sheet.name)
    if name == SHARED:
        return ""
    return (
        f"{sheet.title} is timed by the calibration {SHARED}, for GPUs that nobody has measured; hold it against "
        f"'dse run {name} ... --calibration {SHARED}', not against {name}'s own calibration"
    )


@cache
def shipped_implementations() -> dict[str, Path]:
    """Return the shipped calibrations of implementations by the implementation's name."""
    return _tomls("calibration", "implementations")


def _tomls(*folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted(Path(str(files("dse").joinpath("data", *folder))).glob("*.toml"))}


def load_timing_calibration(path_or_name: str | Path, where: str = "calibration") -> TimingCalibration:
    """Read a GPU's calibration by path, or a shipped one by name, with the shipped ones of all implementations; PRIORS
    is the one that nothing was fitted to.

    Raises InputError naming file, key, value and remedy.
    """
    name, shipped = str(path_or_name), shipped_calibrations()
    if Path(name).suffix == ".toml":
        return _read(Path(name), Path(name).name)
    if name == PRIORS:
        return _before_fits()
    if name not in shipped:
        known = accepted(name, [*shipped, PRIORS])
        raise InputError(f"{where}: no calibration is called {name!r}; {known} (or the path of a .toml)")
    return STORE.made(f"timing calibration {name}", lambda: _read(shipped[name], ""))


def _read(path: Path, file: str) -> TimingCalibration:
    """Read a GPU's calibration; ``file``: what one that is not shipped is called."""
    own = _calibration(path, read_toml(path))
    _refuse_shared(path, own.name)
    shipped = _implementations()
    others = shipped | {name: _with_unseen(fit, shipped[name]) for name, fit in own.fits.items()}
    told = ", ".join(filter(None, (own.model.calibrated_on, file)))  # a file of one's own is not taken for the shipped
    model = composed(others, own, told)
    error_quantiles = own.error_quantiles + tuple(r for other in others.values() for r in other.error_quantiles)
    if own.name != SHARED:
        error_quantiles += tuple(r for r in _shared_quantiles() if r.gpu == UNSEEN)
    return replace(own, model=replace(model, errors=_errors(own)), error_quantiles=error_quantiles)


def _refuse_shared(path: Path, name: str) -> None:
    """Refuse a file that calls itself SHARED with another content: its errors would be said of every GPU."""
    if name == SHARED and read_toml(path) != read_toml(shipped_calibrations()[SHARED]):
        raise InputError(
            f"{path}: name is {SHARED!r}, that of the shipped calibration of any GPU, which this file is "
            "not; give the name of its GPU"
        )


def _with_unseen(fit: TimingCalibration, shipped: TimingCalibration) -> TimingCalibration:
    """A GPU's own fit of an implementation, with the shipped one's errors on GPUs that no fit has seen."""
    return replace(
        fit, error_quantiles=fit.error_quantiles + tuple(r for r in shipped.error_quantiles if r.gpu == UNSEEN)
    )


@cache
def _shared() -> TimingCalibration:
    path = shipped_calibrations()[SHARED]
    return _calibration(path, read_toml(path))


def _shared_quantiles() -> tuple[ErrorQuantiles, ...]:
    return _shared().error_quantiles


def _errors(calibration: TimingCalibration) -> ErrorInterval | None:
    """What a time may be off by: the errors of matrix products that no fit has seen, which rule most workloads."""
    mine = [r for r in calibration.error_quantiles if (r.implementation, r.op, r.regime) == (MATRIX, "gemm", "all")]
    mine = [r for r in mine if r.dtype in TWINS and r.fitted]
    known = max(mine, key=lambda r: (r.dtype == "bf16", r.n), default=None)
    if known is None or known.n < LEAST_ROWS:
        return None
    # A fit to a few rows leaves none out: the errors of GPUs that the shared one has not seen stand for its own.
    unseen = known.gpu == UNSEEN
    source = f"matrix products {'on GPUs' if unseen else 'in shapes'} left out of the fit of "
    source += SHARED if unseen else calibration.like or calibration.name
    anywhere = calibration.name == SHARED
    return ErrorInterval(exp(-known.q90), exp(-known.q10), source, calibration.gpus, anywhere, calibration.own)


@cache
def implementation_calibration(name: str) -> TimingCalibration:
    """Read the shipped calibration of an implementation."""
    path = shipped_implementations()[name]
    return _calibration(path, read_toml(path))


@cache
def _implementations() -> dict[str, TimingCalibration]:
    """The shipped calibrations of all implementations: a timing model holds a coefficient of each."""
    paths = shipped_implementations()
    return {name: _calibration(paths[name], content) for name, content in read_tomls("implementations", paths).items()}


def composed(others: Mapping[str, TimingCalibration], own: TimingCalibration, name: str) -> Amali:
    """Return the timing model whose coefficients hold a value for each implementation: ``own``'s where ``others``, by
    implementation, have none."""
    used = [others.get(implementation, own) for implementation in IMPLEMENTATIONS]
    model = jax.tree.map(lambda *x: np.array(x, float), *(calibrated_model(one.values, name) for one in used))
    # Of an implementation without a fit of its own nothing was measured that the products' discrepancy could tell.
    # A GPU that nobody has measured has the equations alone: what a library does is its own on each GPU.
    measured = own.name != SHARED
    known = [
        one.discrepancy if measured and (one is not own or i == MATRIX) else None
        for i, one in zip(IMPLEMENTATIONS, used, strict=True)
    ]
    return replace(model, discrepancy=composed_discrepancy(known), work=composed_work([one.model.work for one in used]))


@cache
def _before_fits() -> TimingCalibration:
    """The calibration whose implementations are as the fits of their kind begin."""
    values = {kind: values_before_fits(kind) for kind in dict.fromkeys(KINDS.values())}
    of = {k: TimingCalibration(PRIORS, calibrated_model(v, PRIORS), v, (), {}, ()) for k, v in values.items()}
    matrix = of[KINDS[MATRIX]]
    return replace(matrix, model=composed({name: of[kind] for name, kind in KINDS.items()}, matrix, PRIORS))


def _calibration(path: Path, content: dict[str, Any]) -> TimingCalibration:
    check_format(path, content, FORMAT, "dse calibrate timing")
    if "like" in content:
        refuse_keys(path, "a timing calibration with products like another's", content, HEAD)
    refuse_keys(path, "a timing calibration", content, (*HEAD, *FIT))
    name = content.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{path}: name is {name!r}; give a text")
    if content.get("model", MODEL) != MODEL:
        raise InputError(f"{path}: model is {content['model']!r}; give {MODEL!r}, the model that is calibrated")
    gpus = list_of(path, content, "gpus")
    if not all(isinstance(gpu, str) for gpu in gpus):
        raise InputError(f"{path}: gpus is {gpus!r}; give a list of names")
    of_all = (name, tuple(gpus), read_own(content, str(path)))
    fits = _fits(path, content, of_all)
    if "like" not in content:
        return replace(_fit(path, content, of_all), fits=fits)
    like = content["like"]
    if like not in shipped_calibrations():
        raise InputError(f"{path}: like is {like!r}; {accepted(str(like), shipped_calibrations())}")
    products = _calibration(shipped_calibrations()[like], read_toml(shipped_calibrations()[like]))
    model = replace(products.model, calibrated_on=f"{name} (products as {like})")
    return replace(products, name=name, model=model, gpus=of_all[1], own=of_all[2], like=like, fits=fits)


def _fit(
    path: Path,
    content: dict[str, Any],
    of_all: tuple[str, tuple[str, ...], tuple[GpuSheet, ...]],
    implementation: str = "",
) -> TimingCalibration:
    """Read the fit of one implementation; ``of_all``: name, GPUs and own GPUs of the file."""
    name, gpus, own = of_all
    place = f"implementations.{implementation}." if implementation else ""
    of = implementation or content.get("implementation", MATRIX)
    values = read_parameters(path, place, content.get("parameters"), of)
    rows = enumerate(list_of(path, content, "residuals"), 1)
    error_quantiles = tuple(read_error_quantiles(path, f"{place}residuals, number {i}", row) for i, row in rows)
    error_quantiles = tuple(replace(r, implementation=implementation or r.implementation) for r in error_quantiles)
    overheads = _overheads(path, place, table_of(path, content, "harnesses"))
    points = read_points(path, place, of, content.get("discrepancy"))
    work = read_work(path, place, content.get("work"))
    model = replace(calibrated_model(values, name), discrepancy=points.record() if points else None, work=work)
    return TimingCalibration(name, model, values, gpus, overheads, error_quantiles, own, discrepancy=points)


def _overheads(path: Path, place: str, rows: dict[str, Any]) -> dict[str, float]:
    """The overhead [us] that a fit took for each protocol: a record, which no prediction reads."""
    refuse_keys(path, f"{place}harnesses", rows, _protocols())
    return {name: coefficient(path, f"{place}harnesses.{name}", value) for name, value in rows.items()}


@cache
def _protocols() -> tuple[str, ...]:
    """Return the names of the known protocols of measuring."""
    return tuple(dict.fromkeys(row["harness"] for row in read_table("calibration/harness.csv")))


def _fits(
    path: Path, content: dict[str, Any], of_all: tuple[str, tuple[str, ...], tuple[GpuSheet, ...]]
) -> dict[str, TimingCalibration]:
    """Read a file's fits of other implementations; one that serves several (``also``) is each one's."""
    found = {}
    for name, fit in table_of(path, content, "implementations").items():
        if not isinstance(fit, dict):
            raise InputError(f"{path}: implementations.{name} is {fit!r}; give a table")
        refuse_keys(path, f"implementations.{name}", fit, FIT)
        for each in (name, *list_of(path, fit, "also")):
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
