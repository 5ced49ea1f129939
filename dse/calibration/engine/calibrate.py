"""``dse calibrate engine``: what a serving engine's host adds to kernels, from measured runs, with provenance."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.csv_table import OTHER_UNIT
from dse.base.errors import InputError, expect, paths_of
from dse.base.skipped_rows import Skipped, why_skipped
from dse.calibration.engine.answer import EngineAnswer, EngineCost, Errors
from dse.calibration.engine.fit import Runs, fits, measured_runs
from dse.calibration.engine.identifiable import untold
from dse.calibration.timing.rows_fit import FAR_OFF
from dse.measured.network_runs.kinds import RUN_SHAPE, RUNS
from dse.measured.table import OperatorTable, notes_of_gpus, read_times
from dse.timing.calibration import LEAST_ROWS
from dse.validation.error_quantiles import quantiles
from dse.workload.serving_engine import COSTS, FARTHEST, SHARED, Engine, Fitted, engines, find_engine, unmeasured

FEWEST = 8
"""Different runs that a fit needs at least, and of a kind that its interval is said of."""

NOTHING = 1e-6
"""A cost below this is none: the fit ends near 0, never at it."""

DRAWS = 100
"""Bootstrap draws of the families behind the intervals of costs."""

RUN = ("group", "device", "op", "dtype", *RUN_SHAPE)
"""Columns that tell one run from another: rows that share them are repeats."""

TWICE = "the same run with the same time as in another row: counted once"

UNIT = "is latency_us in microseconds, and are the runs of this GPU, network and tp?"


def calibrate_engine(
    name: str,
    tables: str | Path | Sequence[str | Path],
    like: str = SHARED,
    eager: bool | None = None,
    gpu: str | None = None,
    calibration: str | None = None,
) -> EngineAnswer:
    """Fit the costs of an engine to the runs of whole networks in measured tables.

    ``like``: the engine whose kernel libraries ran, and whose costs stand in for what the runs do not tell; ``eager``:
    launches are not replayed as a graph, so that their host time is fitted too (None: as those of ``like``). ``gpu``: a
    preset or TOML for devices without a preset, or for all where every device has one; ``calibration`` of the kernels:
    None takes the device's shipped one, else ``shared``. Families of network and GPUs a layer are left out where
    there are enough to judge the fit. Raises InputError with fewer than FEWEST different runs; one that stands
    twice, with one time, counts once.
    """
    expect("name", name, str, "give a name for the engine, as 'mine'")
    _refuse_name(name)
    tables = paths_of("tables", tables or [])
    if not tables:
        raise InputError("TABLE: none is given; give one or more CSVs of measured runs after the engine's name")
    base, skipped = find_engine(like, "--like"), Skipped()
    read = tuple(read_times(table) for table in tables)
    notes = [f"{Path(table.path).name}: {note}" for table in read for note in notes_of_gpus(table)]
    used = _once(read, skipped)
    runs = Runs(part for table in used for part in measured_runs(table, skipped, base, gpu, calibration))
    count = len(_different(runs.table)) if len(runs.table) else 0
    if count < FEWEST:
        others = "; ".join((why_skipped(skipped) or "none", *notes))
        raise InputError(
            f"{', '.join(map(str, tables))}: {count} different runs of whole networks can be fitted, "
            f"{FEWEST} are needed; others: {others}"
        )
    if eager is None and base.launch_us > 0:
        notes.append(f"launches are taken as eager, as those of {base.name} are: their host time is fitted")
    eager = base.launch_us > 0 if eager is None else eager
    return _answer(name, base, read, runs, eager, skipped, tuple(notes))


def _answer(
    name: str,
    base: Engine,
    read: tuple[OperatorTable, ...],
    runs: Runs,
    eager: bool,
    skipped: Skipped,
    notes: tuple[str, ...],
) -> EngineAnswer:
    out = runs.table["out"].to_numpy()
    every = np.ones(len(out), bool)
    seen = ~out if 0 < out.sum() <= len(out) / 2 else every
    costs = _costs(runs, seen, base, _not_fitted(runs, seen, eager))
    values, kernels = {c.name: c.value for c in costs}, {"turn": base.turn}
    whole = {name: getattr(base, name) for name in COSTS}
    _refuse_other_unit(runs.error(seen, values), runs.error(every, kernels))
    some = bool((~seen).any())
    judging = ~seen if some else every
    low, high, kinds = left_out_interval(runs.error(judging, values), runs.table[judging], some)
    off = [_percent(runs.error(judging, costs)) if some else None for costs in (values, kernels, whole)]
    errors = Errors(_percent(runs.error(every, kernels)), _percent(runs.error(seen, values)), *off)
    networks, devices, gpus, calibrations = (
        tuple(sorted(set(runs.table[column].astype(str)))) for column in ("group", "device", "gpu", "calibration")
    )
    fitted = Fitted(networks, tuple(f"{Path(t.path).name} {t.sha256}" for t in read), gpus, calibrations, kinds)
    return EngineAnswer(
        name, base, read, int(seen.sum()), int((~seen).sum()), len(_different(runs.table[~seen])), costs, errors, low,
        high, skipped, devices, fitted, _doubts(base, runs.error(every, kernels), runs.error(every, whole)), notes,
    )  # fmt: skip


def _refuse_name(name: str) -> None:
    if not name.strip():
        raise InputError("NAME: '' is no name; give the engine's, as vllm_2025")
    if name in engines():
        raise InputError(f"NAME: {name!r} is a shipped engine ('dse show engines'); give the engine one of its own")


def _once(tables: Sequence[OperatorTable], skipped: Skipped) -> list[OperatorTable]:
    """Return tables without the runs that stand in them twice with one time; raises InputError at one given twice."""
    first: dict[str, str] = {}
    for table in tables:
        if table.sha256 in first:
            raise InputError(f"{table.path}: is the same table as {first[table.sha256]}; give it once")
        first[table.sha256] = table.path
    rows = [table.frame.reindex(columns=[*RUN, "latency_us"]).astype(object) for table in tables]
    every = pd.concat(rows, ignore_index=True)
    twice = (every.duplicated() & every["op"].isin(RUNS)).to_numpy()
    if twice.any():
        skipped[TWICE] += int(twice.sum())
    parts = np.split(twice, np.cumsum([len(table.frame) for table in tables])[:-1])
    return [replace(t, frame=t.frame[~part].reset_index(drop=True)) for t, part in zip(tables, parts, strict=True)]


def _different(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row of each run of a table."""
    return table[list(RUN)].drop_duplicates()


def left_out_interval(error: np.ndarray, table: pd.DataFrame, left_out: bool) -> tuple[float, float, tuple[str, ...]]:
    """Return the ends of the log errors (runs,) of a ``table`` of judging runs, and the kinds that they are said of.

    Runs that were fitted, or too few different ones, judge nothing by themselves: then it is the widest of theirs and
    of an engine that nobody has measured.
    """
    low, _, high = quantiles(error, table["family"])
    different = _different(table)
    counts = different["op"].value_counts()
    enough = left_out and len(different) >= LEAST_ROWS
    kinds = tuple(sorted(map(str, counts.index[counts >= FEWEST]))) if enough else ()
    low, high = (low, high) if kinds else unmeasured(low, high)
    if max(-low, high) > FARTHEST:
        raise InputError(f"calibrate engine: a tenth of the runs is more than {OTHER_UNIT:g} times off: {UNIT}")
    return low, high, kinds


def _refuse_other_unit(fitted: np.ndarray, alone: np.ndarray) -> None:
    """Refuse runs that are far shorter than their kernels, or so long that no host explains it; log errors (runs,)."""
    short, long = float(np.exp(np.median(fitted))), float(np.exp(np.median(alone)))
    if short > FAR_OFF or long < 1 / OTHER_UNIT:
        told = f"fitted, {short:.3g}" if short > FAR_OFF else f"of the kernels alone, {long:.3g}"
        raise InputError(f"calibrate engine: the median of predicted over measured times is, {told}: {UNIT}")


def _doubts(base: Engine, alone: np.ndarray, whole: np.ndarray) -> tuple[str, ...]:
    """Return that runs are shorter than their kernels, by more than errors explain, or far longer than with the costs
    of the engine that they are like; log errors (runs,) of kernels ``alone`` and of ``whole`` runs with those costs."""
    short, long = float(np.exp(np.median(alone))), float(np.exp(np.median(whole)))
    if short > np.exp(engines()[SHARED].high):
        return (
            f"the kernels of the median run alone are predicted {short:.2g} times as long as it was measured: {UNIT}",
        )
    if long < 1 / FAR_OFF:
        return (f"the median run was measured {1 / long:.2g} times as long as with the costs of {base.name}: {UNIT}",)
    return ()


def _percent(error: np.ndarray) -> float:
    return float(100 * np.mean(np.abs(np.expm1(error))))


def _not_fitted(runs: Runs, seen: np.ndarray, eager: bool) -> dict[str, str]:
    """Costs that the fitted runs do not tell, and why."""
    passes, served = runs.passes(seen), set(runs.table["op"][seen])

    def one(values: np.ndarray) -> bool:
        return len(np.unique(values)) < 2

    reasons = {
        "launch_us": "" if eager else "launches are replayed as a graph (else: --eager)",
        "request_us": "every step decodes as many requests" if one(passes.requests[passes.prompts == 0]) else "",
        "prompt_us": "" if "llm_prefill" in served else "no prefill by itself (llm_prefill)",
        "reduce_us": "every run has as many all-reduces" if one(passes.reductions) else "",
        "turn": "" if "serving_tpot" in served else "no token of a server (serving_tpot)",
    }
    return {name: why for name, why in reasons.items() if why}


def _costs(runs: Runs, seen: np.ndarray, base: Engine, not_fitted: dict[str, str]) -> tuple[EngineCost, ...]:
    """The costs, with intervals by a bootstrap over shape families."""
    free = [name for name in COSTS if name not in not_fitted]
    kept = {name: 0.0 if name == "launch_us" else getattr(base, name) for name in not_fitted}
    family, place = np.unique(runs.table["family"][seen].to_numpy(str), return_inverse=True)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(family), np.full(len(family), 1 / len(family)), DRAWS).astype(float)
    weights = np.concatenate([np.ones((1, len(place))), drawn[:, place]])
    passes, measured = runs.passes(seen), runs.table["latency_us"][seen].to_numpy()
    found = fits(passes, measured, free, kept, weights, {name: getattr(base, name) for name in free})
    why = untold(passes, measured, place, {name: float(values[0]) for name, values in found.items()}, free)
    units = dict.fromkeys(COSTS, "us") | {"turn": "1"}
    costs = []
    for name in COSTS:
        ends = np.quantile(found[name][1:], (0.025, 0.975))
        value, low, high = (float(x) if x > NOTHING else 0.0 for x in (found[name][0], *ends))
        low, high = (value, value) if name in why else (low, high)  # draws stay near one of many that fit as well
        costs.append(EngineCost(name, value, units[name], low, high, not_fitted.get(name, ""), why.get(name, "")))
    return tuple(costs)
