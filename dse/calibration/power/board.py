"""The board model fitted to a measured table: shape families left out, strengths of the prior, bootstrap draws."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.error_interval import ErrorInterval
from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.calibration.bootstrap import PERCENTILES, benchmark_draws, mean_interval
from dse.calibration.power import board_fit
from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.board_fit import PRIOR_WEIGHT
from dse.calibration.power.document import Answer
from dse.calibration.power.unit_loops import LoopFit, fit_loops, is_loop, loop_launches
from dse.hardware.own_gpus import own_gpus
from dse.hardware.presets import GpuSheet
from dse.measured.board_watts import SETTLED_US, watts_of
from dse.measured.device_models import device_models, device_names, power_limits
from dse.measured.network_runs.kinds import RUNS
from dse.measured.power_rows import MeasuredLaunches, load_rows
from dse.measured.table import read_operators, refuse_one_family, tensor_parallel
from dse.power.board import FREE, BoardPower
from dse.power.calibration import LEFT_OUT
from dse.validation.error_quantiles import quantiles
from dse.validation.power import without_power

STRENGTHS = (PRIOR_WEIGHT / 3, PRIOR_WEIGHT, PRIOR_WEIGHT * 3)
FOLDS = 5
DRAWS = 40

OF = "intervals are of drawn families and of drawn priors: they hold for coefficients within their priors' ranges"
"""What the intervals of coefficients say."""

ABOVE_LIMIT = 1.25
"""Median watts over the board's limit [1] that no reading explains: a governor holds the mean of milliseconds."""


BELOW_LIMIT = 0.9
"""Watts over the board's limit [1] below which a row is away from the limit."""


class _Fit(NamedTuple):
    """Ratios of predicted to measured watts of every row (train, left out) by model; strength; coefficients."""

    ratios: dict[str, tuple[np.ndarray, np.ndarray]]
    strength: float
    values: np.ndarray


def calibrate_board(path: Path, progress: Callable[[int], None], parts: int, gpu: str | None = None) -> Answer:
    """Fit the board's coefficients to the long runs of one device; shape families are what is left out.

    ``progress`` is called with the number of ``parts`` done; ``gpu`` (a preset or TOML) stands for the device. Raises
    InputError for a table that cannot be used.
    """
    measured = read_operators(path)
    frame = measured.frame.assign(tp=tensor_parallel(measured), device=device_names(measured.frame))
    models, unknown = device_models(frame, gpu=gpu)
    loops, frame = _apart(path, frame)
    reason = _why_not(frame, unknown, power_limits(models))
    skipped = measured.skipped + counted(reason)
    used = frame[reason == ""]
    if used.empty:
        raise InputError(_nothing_left(path, skipped))
    if used["device"].nunique() > 1:
        raise InputError(f"{path}: rows of {', '.join(sorted(used['device'].unique()))}; give a table of one device")
    on = models[str(used["device"].iloc[0])]
    rows = load_rows(used, on.sheet, skipped, on.model)
    if rows is None:
        raise InputError(_nothing_left(path, skipped))
    refuse_one_family(str(path), rows.table["family"])
    _refuse_above_the_limit(path, rows.table["power_w"], on.sheet)
    of_units = _of_units(loops, on.sheet, str(used["device"].iloc[0]), skipped)
    progress(1)
    result, drawn = _fits(rows, of_units)
    progress(parts - 1)
    models = [
        {
            "name": name,
            "train": float(train.mean()),
            "leave_families_out": float(out.mean()),
            "interval": list(mean_interval(out, rows.table["family"].tolist())),
            "headline": name == "board",
        }
        for name, (train, out) in ((n, _off(*pair)) for n, pair in result.ratios.items())
    ]
    notes = [f"families of shapes are left out in {FOLDS} folds; the time is the measured one, no sustained times", OF]
    below = (rows.table["power_w"] < BELOW_LIMIT * on.sheet.numbers()["tdp_w"]).to_numpy()
    notes += [*_as_constant(result, below), *_no_better(models)]
    notes += [of_units.words()] if of_units else []
    left_out = _left_out(result, rows.table["family"], on.sheet)
    name, by = f"board_refit_{measured.sha256[:8]}", f"{FOLDS} folds of shape families"
    return Answer("board", name, measured.path, measured.sha256, len(rows.table), skipped, result.strength, by, models,
                  _coefficients(result, drawn, rows, of_units), None, notes, left_out)  # fmt: skip


def _apart(path: Path, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the loops of one unit of a table, and its kernels; raises InputError where there are loops alone."""
    alone = is_loop(frame)
    if len(frame) and alone.all():
        raise InputError(f"{path}: op: {len(frame)} loops of one unit alone; give products or attention beside them")
    return frame[alone], frame[~alone]


def _of_units(loops: pd.DataFrame, sheet: GpuSheet, device: str, skipped: Skipped) -> LoopFit | None:
    """What loops of one unit of the device say, None without any; those of others count in ``skipped``."""
    mine = loops["device"] == device
    skipped.update({"a loop of one unit of another device": int((~mine).sum())} if (~mine).any() else {})
    return fit_loops(loop_launches(loops[mine], sheet)) if mine.any() else None


def _why_not(frame: pd.DataFrame, unknown: dict[str, str], limits: dict[str, float]) -> pd.Series:
    """Return why no fit can use a row, "" where one can."""
    reason = without_power(frame, unknown, limits)
    reason = reason.where((reason != "") | ~frame["op"].isin(RUNS), "a run of a whole network: no kernel")
    short = (reason == "") & (frame["latency_us"] < SETTLED_US)
    return reason.where(~short, f"shorter than {SETTLED_US:g} us: power of what ran before")


def _refuse_above_the_limit(path: Path, watts: pd.Series, sheet: GpuSheet) -> None:
    """Refuse watts that no single board of this GPU can draw in the median."""
    share = float(watts.median()) / sheet.numbers()["tdp_w"]
    if share > ABOVE_LIMIT:
        raise InputError(
            f"{path}: the median power_w is {watts.median():.0f} W, {share:.2g} times the tdp_w of {sheet.title} "
            f"({sheet.numbers()['tdp_w']:g} W): give the watts of one board, or the GPU that was measured (--gpu)"
        )


def _nothing_left(path: Path, skipped: Skipped) -> str:
    return f"{path}: no row can be fitted: {why_skipped(skipped)}"


def _off(*ratios: np.ndarray) -> list[np.ndarray]:
    """Errors [%] of ratios of predicted to measured."""
    return [100 * np.abs(ratio - 1) for ratio in ratios]


def _as_constant(result: _Fit, below: np.ndarray) -> list[str]:
    """That a constant is as near to rows away from the power limit (``below`` (rows,)), where there are others, too."""
    if below.all() or not below.any():
        return []
    fit, constant = (_off(result.ratios[name][1][below])[0].mean() for name in ("board", "mean"))
    if fit < constant:
        return []
    return [
        f"away from the power limit ({int(below.sum())} rows) the fit is {fit:.1f} % off, a constant "
        f"{constant:.1f} %: operands, which nobody recorded, decide (experiment 006)"
    ]


def _no_better(models: list[dict[str, Any]]) -> list[str]:
    """That a fit is worth nothing, where something simpler is as near to what it left out."""
    fit, *others = sorted(models, key=lambda model: not model["headline"])
    best = min(others, key=lambda model: model["leave_families_out"])
    if fit["leave_families_out"] < best["leave_families_out"]:
        return []
    return [
        f"on families left out the fit is {fit['leave_families_out']:.1f} % off, {best['name']} "
        f"{best['leave_families_out']:.1f} %: these rows are too few or too alike to fit, do not take the coefficients"
    ]


def _left_out(result: _Fit, families: pd.Series, gpu: GpuSheet) -> ErrorInterval:
    """Where eight of ten measured values lie from what a fit without their family predicts."""
    low, _, high = quantiles(np.log(result.ratios["board"][1]), families)
    return ErrorInterval(float(np.exp(-high)), float(np.exp(-low)), LEFT_OUT, (gpu.name,), own=own_gpus([gpu]))


def _coefficients(
    result: _Fit, drawn: np.ndarray, rows: MeasuredLaunches, of_units: LoopFit | None
) -> list[Coefficient]:
    """The fitted coefficients, each with the interval of its draws (draws, coefficients) and the data's share in it;
    then those that loops alone show."""
    ends = np.percentile(drawn, PERCENTILES, axis=0).tolist()
    start = of_units.start if of_units else None
    shares = board_fit.data_share(rows, result.values, result.strength, start=start)
    return [
        Coefficient(name, value, board_fit.units()[name], low, high, share)
        for name, value, low, high, share in zip(FREE, result.values.tolist(), *ends, shares.tolist(), strict=True)
    ] + (of_units.alone if of_units else [])


def _fits(rows: MeasuredLaunches, of_units: LoopFit | None = None) -> tuple[_Fit, np.ndarray]:
    """The fit, and bootstrap draws of its coefficients, about what loops of one unit say where there are any.

    The strength of a fold is chosen among the other folds, so that a row's family is seen by no choice.
    """
    fold = _folds(rows.table["family"])
    present = np.unique(fold)
    outs = list(dict.fromkeys([frozenset[int](), *(frozenset([a, b]) for a in present for b in present)]))
    masks = np.array([[float(f not in out) for f in fold] for out in outs])
    outs, masks = [o for o, m in zip(outs, masks, strict=True) if m.any()], masks[masks.any(axis=1)]
    levels = len(STRENGTHS)
    weights, strengths = np.repeat(masks, levels, axis=0), np.tile(STRENGTHS, len(masks))
    if of_units is None:
        start, fits = board_fit.prior_model(), board_fit.fit_batch(rows, weights, strengths)
    else:
        start, about = of_units.start, np.tile(of_units.about, (len(weights), 1))
        fits = board_fit.fit_batch(rows, weights, strengths, start=start, about=about)
    result = _ratios(rows, fold, outs, fits.reshape(len(masks), levels, -1), start)
    return result, _drawn(rows, result.strength, of_units)


def _drawn(rows: MeasuredLaunches, strength: float, of_units: LoopFit | None = None) -> np.ndarray:
    """Return coefficients (draws, coefficients) of fits to families drawn with replacement, each about a prior drawn
    from the prior: about the one prior alone all draws are off by what it pulls, and none shows that."""
    draws = benchmark_draws(rows.table["family"].tolist(), DRAWS)
    about = np.random.default_rng(1).standard_normal((DRAWS, len(FREE)))
    about += of_units.about if of_units else 0.0
    start = of_units.start if of_units else None
    return board_fit.fit_batch(rows, draws, np.full(DRAWS, strength), start=start, about=about)


def _folds(families: pd.Series) -> np.ndarray:
    """Return each row's fold, FOLDS of about as many families each; of fewer families each is one of its own."""
    order = sorted(families.unique(), key=lambda name: zlib.crc32(name[::-1].encode()))
    return families.map({name: place % FOLDS for place, name in enumerate(order)}).to_numpy()


def _ratios(
    rows: MeasuredLaunches, fold: np.ndarray, outs: list[frozenset[int]], fits: np.ndarray, start: BoardPower
) -> _Fit:
    measured = rows.table["power_w"].to_numpy()

    def ratio(values: np.ndarray) -> np.ndarray:
        model = start.with_values(dict(zip(FREE, jnp.asarray(values), strict=True)))
        return watts_of(model, rows) / measured

    ratios = np.array([[ratio(values) for values in each] for each in fits])  # (fits, strengths, rows)
    place = {out: i for i, out in enumerate(outs)}
    present = np.unique(fold)

    def chosen(out: frozenset[int]) -> int:
        inner = [(place[out | {f}], fold == f) for f in present if f not in out and out | {f} in place]
        off = [np.abs(ratios[i][:, keep] - 1).mean(axis=1) for i, keep in inner]
        return int(np.argmin(np.mean(off, axis=0))) if inner else 1

    whole, none = place[frozenset()], chosen(frozenset())
    left_out = np.empty(len(measured))
    for f in present:
        out = frozenset([f])
        left_out[fold == f] = ratios[place[out], chosen(out)][fold == f]
    prior = watts_of(board_fit.prior_model(), rows) / measured
    mean = [
        np.array([measured[fold != f].mean() if cross else measured.mean() for f in fold]) for cross in (False, True)
    ]
    models = {
        "board": (ratios[whole, none], left_out),
        "priors alone": (prior, prior),
        "mean": (mean[0] / measured, mean[1] / measured),
    }
    return _Fit(models, STRENGTHS[none], fits[whole, none])
