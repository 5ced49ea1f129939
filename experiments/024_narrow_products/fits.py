"""Fits of products in narrow types: an implementation a framework, type and generation, and each framework's passes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.discrepancy_fit import FOLDS, Measured, best_choice, picked
from dse.calibration.timing.fit import FIXED, NAMES, Determined, fit_rows, fit_stage, model_of, parameters, priors
from dse.calibration.timing.implementations import by_implementation
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import DISCREPANCY, SHORTLISTS, StagedFit, errors_after
from dse.hardware.presets import find_preset, load_sheet
from dse.measured.quantisation_passes import ways
from dse.measured.quantisation_time import pass_timings
from dse.measured.row_shape import framework_of
from dse.measured.table import OperatorTable, read_times
from dse.measured.timed_rows import TimedRows, best, blocks, joined, us_of
from dse.timing.calibration import SHARED, calibration_for, load_timing_calibration
from dse.timing.error_quantiles import ErrorQuantiles
from dse.validation.error_quantiles import errors_of, seen
from dse.validation.error_quantiles import unseen as of_unseen
from dse.workload.implementation import KINDS
from dse.workload.operators.narrow_products import NARROW
from experiments import data

TABLE = "aiconfigurator__gemm_narrow"

TYPES = ("fp8_block", "fp8", "nvfp4", "w4a16", "w8a16", "w8a8")
"""Types of products in the names of implementations; the first that fits counts."""

OTHERS = 2
"""Implementations of the same type whose costs stand for those of a release or GPU that nobody measured."""

HOST_BOUND = "int8_w8a8"
"""Type whose rows, of one framework, never take less than 20 us: they tell of its host."""

ROUNDS = 5
"""Fits in turn of the products' costs and of the passes."""

MOST = 768
"""Rows of an implementation that are fitted at most: one size of a compiled program."""

FEWEST = 150
"""Rows that a residual by size rests on at least: each is of a shape of its own."""

POINTS = (16, 32, 64)
"""Points of a residual by size that are tried: an implementation has a few hundred rows."""

FREE = {p.name for p in parameters(NARROW) if p.stage != FIXED} - {"overhead_us"}
"""Costs that are fitted."""

AWAY = 0.05
"""Share of a parameter's range, in logarithm, that starts stay away from its bounds."""

HELD = {"stretch": 0.3, "launches": 0.02}
"""What a pass's deviation from static quantisation costs a fit: a doubling, and a launch."""

CORNER = 0.05
"""Log error from which on a row counts by its distance."""


@dataclass
class Part:
    """The rows of one implementation, without their passes: ``bare_us`` of static quantisation's kernels, ``launch_us``
    of one more launch, and ``values`` of the costs so far."""

    name: str
    rows: TimedRows
    out: np.ndarray
    passes: np.ndarray  # "way, release, generation" of each row, "" where there is no pass
    bare_us: np.ndarray
    launch_us: np.ndarray
    overhead_us: np.ndarray  # of the passes
    values: dict[str, float]

    def passes_us(self, found: dict[str, tuple[float, float]]) -> np.ndarray:
        """Return what the passes take [us] with their ``launches`` and ``stretch``."""
        launches, stretch = np.array([found.get(name, (1.0, 1.0)) for name in self.passes]).T
        return self.overhead_us + stretch * (self.bare_us + (launches - 1.0) * self.launch_us)

    def with_passes(self, found: dict[str, tuple[float, float]]) -> TimedRows:
        """Return the rows whose overhead holds their passes."""
        overhead = self.rows.table["overhead_us"].to_numpy() + self.passes_us(found)
        return replace(self.rows, table=self.rows.table.assign(overhead_us=overhead))


def measured_rows() -> tuple[OperatorTable, pd.DataFrame]:
    """Return the table, and those of its rows that time kernels: neither the host nor outliers."""
    table = read_times(data.path(TABLE))
    notes = table.frame["notes"].astype(str)
    kernels = ~notes.str.contains("eager|outlier") & (table.frame["dtype"] != HOST_BOUND)
    return table, table.frame[kernels]


def parts_of(frame: pd.DataFrame) -> list[Part]:
    """Return the rows of each implementation of narrow products."""
    sheets = {device: load_sheet(find_preset(device) or device) for device in frame["device"].unique()}
    found: dict[str, list[TimedRows]] = {}
    for device, mine in frame.groupby("device"):
        every = joined(list(blocks(mine, {str(device): sheets[device]}, None, Skipped())))
        for name, rows in by_implementation(every).items():
            found.setdefault(name, []).append(rows)
    return [part_of(name, joined(rows)) for name, rows in found.items() if KINDS[name] == NARROW]


def few(rows: TimedRows) -> TimedRows:
    """Return the left-out rows and at most MOST others, drawn at random with a fixed seed."""
    seen = np.flatnonzero(~left_out(rows.table["family"]))
    dropped = np.random.default_rng(0).permutation(seen)[MOST:]
    kept = np.ones(len(rows.table), bool)
    kept[dropped] = False
    return rows.keep(kept)


def part_of(name: str, rows: TimedRows) -> Part:
    """Return the rows of an implementation with their passes as static quantisation is."""
    rows = few(rows)
    model, table = load_timing_calibration(SHARED).model, rows.table
    quantised = [str(way).split(", ")[0] for way in table["quantises"]]
    generation = name.rsplit("_", 1)[1]
    passes = [
        f"{way}, {framework_of(str(notes))}, {generation}" if way else ""
        for way, notes in zip(quantised, table["notes"], strict=True)
    ]
    bare, launch, overhead = np.zeros((3, len(table)))
    for way in set(quantised) - {""}:
        at = np.flatnonzero(np.array(quantised) == way)

        def us(one, at: np.ndarray = at) -> np.ndarray:
            return np.asarray(us_of(pass_timings(model, rows, at, one)))[: len(at)]

        first, *others = ways()[way].passes
        bare[at] = sum((us(one) for one in others), us(first))
        launch[at] = us(replace(first, launches=2.0)) - us(first)
        overhead[at] = (1 + len(others)) * table["overhead_us"].to_numpy()[at]
    shared = load_timing_calibration(SHARED).values
    start = {p.name: shared[p.name] for p in parameters(NARROW) if p.stage != "fixed" and p.name in shared}
    prior = {p.name: p.prior for p in parameters(NARROW)}
    kept = {name: value for name, value in start.items() if name not in ("lanes", "mixed")}
    return Part(name, rows, left_out(table["family"]), np.array(passes), bare, launch, overhead, away(prior | kept))


def away(values: dict[str, float]) -> dict[str, float]:
    """Return values of parameters that keep away from their bounds, where nothing would move them."""
    found = {}
    for p in parameters(NARROW):
        low, high = np.log([p.low, p.high])
        margin = AWAY * (high - low)
        found[p.name] = float(np.exp(np.clip(np.log(max(values[p.name], 1e-9)), low + margin, high - margin)))
    return found


def fit_products(part: Part, found: dict[str, tuple[float, float]]) -> np.ndarray:
    """Fit a part's costs once, its passes held; return the time of its products [us]."""
    rows = part.with_passes(found)
    prior = priors(NARROW, part.values)
    chosen = rows.shortlist(model_of(part.values), SHORTLISTS[NARROW])
    z = fit_stage(np.zeros(len(NAMES)), FREE, prior, fit_rows(chosen, ~part.out * 1.0, False, MOST))
    part.values = away(dict(zip(NAMES, np.asarray(prior.values(jnp.asarray(z))).tolist(), strict=True)))
    return best(model_of(part.values), rows)[0] - part.passes_us(found)


def fit_passes(parts: Sequence[Part], products: Sequence[np.ndarray], name: str) -> tuple[float, float]:
    """Return launches and stretch of the pass ``name`` on all rows that have it, the products held."""
    bare, launch, overhead, product, measured = np.concatenate(
        [
            np.stack((p.bare_us, p.launch_us, p.overhead_us, us, p.rows.table["latency_us"].to_numpy()))[
                :, (p.passes == name) & ~p.out
            ]
            for p, us in zip(parts, products, strict=True)
        ],
        axis=1,
    )

    def error(at: np.ndarray) -> np.ndarray:
        launches, stretch = at[0], np.exp(at[1])
        total = product + overhead + np.maximum(stretch * (bare + (launches - 1.0) * launch), -0.5 * overhead)
        return np.r_[np.log(total / measured), HELD["launches"] * (launches - 1.0), HELD["stretch"] * at[1]]

    fit = least_squares(error, (1.0, 0.0), loss="soft_l1", f_scale=CORNER, bounds=((0.2, -1.5), (25.0, 2.0)))
    return float(fit.x[0]), float(np.exp(fit.x[1]))


def fit_all(
    parts: Sequence[Part], tables: Sequence[OperatorTable], only: Sequence[str] = ()
) -> tuple[dict[str, TimingAnswer], dict[str, tuple[float, float]]]:
    """Fit products and passes in turn, then each implementation whole; return the answers and the passes."""
    names = sorted({name for p in parts for name in p.passes} - {""})
    first = {name: ways()[name].passes[0] for name in names if name in ways()}
    found = {name: (one.launches, one.stretch) for name, one in first.items()}
    for _ in range(ROUNDS):
        products = [fit_products(part, found) for part in parts]
        if not only:
            found |= {name: fit_passes(parts, products, name) for name in names}
        show(parts, products, found)
    answers = {part.name: whole_fit(part, found, tables) for part in parts}
    return answers, found


def with_residual(fit: StagedFit, rows: TimedRows, out: np.ndarray) -> StagedFit:
    """Return a fit with what its equations leave by size, where families left out in turn gain by it, and where the GPU
    has a calibration of its own: with the shared one the equations stand alone."""
    sizes = np.stack([np.asarray(x)[rows.starts] for x in rows.kernels.problem], axis=-1).astype(float)
    sm_counts, overhead = np.unique(rows.gpus.sm_count), rows.table["overhead_us"].to_numpy()
    alone = any(calibration_for(find_preset(str(d)) or "") == SHARED for d in rows.table["device"].unique())
    if (~out).sum() < FEWEST or len(sm_counts) > 1 or alone:
        return fit
    kernel = np.maximum(fit.predicted_us - overhead, 0.02 * fit.predicted_us)
    folds = np.array([crc32(b"fold " + str(name).encode()) % FOLDS for name in rows.table["family"]])
    error = np.log(rows.table["latency_us"].to_numpy() / fit.predicted_us)
    mine = Measured(NARROW, float(sm_counts[0]), sizes, error, kernel / fit.predicted_us, folds).rows(~out)
    choice = best_choice(mine, POINTS)
    if choice is None:
        return fit
    points = picked(mine, choice[:1], choice[1])[choice[0]]
    predicted = fit.predicted_us + kernel * np.expm1(points.at(sizes))
    stage = errors_after(DISCREPANCY, rows.table, out, predicted, (), int((~out).sum()))
    return replace(fit, discrepancy=points, stages=(*fit.stages, stage), predicted_us=predicted)


class NarrowAnswer(TimingAnswer):
    """The answer of a fit whose parameters have no intervals: launches and passes trade with each other."""

    def coefficients(self) -> list[dict[str, Any]]:
        """Return the parameters with their units and stage."""
        known = (p for p in parameters(NARROW) if p.name in FREE)
        return [{"name": p.name, "value": self.fit.values[p.name], "unit": p.unit, "stage": p.stage} for p in known]


def whole_fit(part: Part, found: dict[str, tuple[float, float]], tables: Sequence[OperatorTable]) -> TimingAnswer:
    """Return the answer of a part's costs, with what its equations leave."""
    rows, out, values = part.with_passes(found), part.out, part.values
    predicted, _ = best(model_of(values), rows)
    stage = errors_after("all at once", rows.table, out, predicted, tuple(sorted(FREE)), int((~out).sum()))
    costs = {name: value for name, value in values.items() if name != "overhead_us"}
    nothing = Determined((), *(np.zeros(0) for _ in range(5)))
    fit = with_residual(StagedFit(costs, (stage,), nothing, predicted), rows, out)
    for one in fit.stages:
        print(f"| {part.name} | {one.name} | {one.rows} | {one.fitted:.1f} | {one.left_out:.1f} |", flush=True)
    judged = errors_of(rows.table, fit.predicted_us).assign(implementation=part.name, out=out)
    gpus = tuple(sorted(judged["gpu"].unique()))
    return NarrowAnswer(
        part.name,
        gpus,
        tuple(tables),
        int((~out).sum()),
        int(out.sum()),
        {str(way): float(us) for way, us in part.rows.table.groupby("harness")["overhead_us"].mean().items()},
        fit,
        seen(judged[out], set(judged["way"]), gpus),
        part.name,
    )


def show(parts: Sequence[Part], products: Sequence[np.ndarray], found: dict[str, tuple[float, float]]) -> None:
    """Print the errors of a round on fitted and left-out families."""
    for part, us in zip(parts, products, strict=True):
        off = 100 * np.abs((us + part.passes_us(found)) / part.rows.table["latency_us"].to_numpy() - 1)
        print(f"{part.name}: {off[~part.out].mean():.1f} {off[part.out].mean():.1f}", flush=True)
    print({name: tuple(round(x, 2) for x in numbers) for name, numbers in found.items()}, flush=True)


def with_unseen(
    answers: dict[str, TimingAnswer], parts: Sequence[Part], found: dict[str, tuple[float, float]]
) -> dict[str, TimingAnswer]:
    """Return the answers with the intervals of GPUs and releases that were not measured: the errors of each
    implementation's rows under the costs of some of its type on other GPUs or of other releases."""
    done = {}
    for part in parts:
        others = [n for n in answers if n != part.name and type_of(n) == type_of(part.name)][:OTHERS]
        transfers = [transfer(part, answers[name].fit.values, found) for name in others]
        quantiles: tuple[ErrorQuantiles, ...] = ()
        for dtype in part.rows.table["dtype"].unique() if transfers else ():
            mine = [t[t["dtype"] == dtype] for t in transfers]
            quantiles += of_unseen(mine, part.name, "gemm", str(dtype))
        done[part.name] = replace(answers[part.name], error_quantiles=answers[part.name].error_quantiles + quantiles)
    return done


def type_of(implementation: str) -> str:
    """Return the type of products that an implementation is of, the first part of its name."""
    return next(kind for kind in TYPES if implementation.startswith(f"{kind}_"))


def transfer(part: Part, values: dict[str, float], found: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Return a part's left-out rows with their errors under other costs."""
    rows = part.with_passes(found).keep(part.out)
    return errors_of(rows.table, best(model_of(values), rows)[0])


def fitted(only: Iterable[str] = ()) -> tuple[dict[str, TimingAnswer], dict[str, tuple[float, float]]]:
    """Fit the implementations of narrow products, or ``only`` some with the passes as they are shipped."""
    table, frame = measured_rows()
    parts = [part for part in parts_of(frame) if not only or part.name in set(only)]
    answers, found = fit_all(parts, [table], list(only))
    return with_unseen(answers, parts, found), found
