"""Model classes for the power of measured kernels, each judged on kernels and benchmarks that its fit has not seen.

Their watts are linear in their coefficients: AccelWattch's components times a multiplier each (Kandiah et al., MICRO
2021, Eq. 13, 14), and what must be beaten. No class was chosen by its held-out error: HEADLINE is the one of the paper.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import PchipInterpolator

from dse.calibration.bootstrap import PERCENTILES, benchmark_draws, identified, mean_interval, probability_lower
from dse.calibration.folds import Folds
from dse.calibration.losses import BEND
from dse.calibration.optimiser import Fits, LinearProblem, Ranges, solve
from dse.measured.table import KernelTable
from dse.power.accelwattch import AccelWattch, part_counters
from dse.power.counters import constants

HEADLINE = "multipliers"

CLASSES = {
    "multipliers": "AccelWattch, a multiplier for every dynamic component, prior: the published coefficients",
    "ridge": "the same with the squared relative error and without orderings (the note's row)",
    "base_and_multipliers": "multipliers, with constant, static and the mean dynamic multiplier ten times freer",
    "four_parameters": "base, active SMs, warp instructions, L2 sectors; no prior (features chosen post hoc)",
    "average": "the mean of multipliers and four_parameters",
    "one_scale": "AccelWattch, one multiplier for all dynamic components",
    "published": "AccelWattch as published, no fit",
    "mean": "the mean of the measured watts",
}
"""Model classes; the last four and ``four_parameters`` are the baselines."""

STRENGTHS = tuple(float(x) for x in 10.0 ** np.arange(-5.0, 1.01, 0.25))
"""Strengths of the prior at which all folds are fitted; inner leave-one-benchmark-out chooses among these and FINER."""

FINER = 8
"""Strengths between two of STRENGTHS whose watts are interpolated: with 26 kernels a coarse grid of strengths moves the
held-out error by a tenth of a point either way (experiments/007_power_fit), a continuous strength does not."""

UNFITTED = ("IDLE_COREP", "CONSTP", "STATICP")
"""Components whose multiplier the paper's programme holds at 1."""

ORDERINGS = {
    "FPUP": "INTP",
    "DPUP": "FPUP",
    "INT_MULP": "INTP",
    "INT_MUL24P": "INTP",
    "INT_MUL32P": "INTP",
    "FP_DIVP": "FP_MULP",
    "DP_MULP": "FP_MULP",
    "FP_SQRTP": "FP_MULP",
    "FP_LGP": "FP_MULP",
    "FP_SINP": "FP_MULP",
    "FP_EXP": "FP_MULP",
    "TENSORP": "FP_MULP",
    "TEXP": "FP_MULP",
}
"""Component -> the one whose energy an operation may not be below (:func:`ordered_energies`), as released."""

LOW, HIGH = 1e-3, 1e3
"""Bounds of a multiplier, as in the paper."""

LOOSE = 0.1
"""Prior weight of base and common scale against that of a component: ten times the standard deviation."""

COEFFICIENTS_OF = {"hw": "hw", "sass": "sass_sim", "ptx": "ptx_sim", "hybrid": "hybrid"}
"""Variant of the published coefficients behind each column prefix of the table."""


@dataclass(frozen=True)
class Problem:
    """A model class on a table: names and units of the coefficients, where a fit starts, strengths to choose among."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    linear: LinearProblem
    start: np.ndarray
    strengths: tuple[float, ...]


@dataclass(frozen=True)
class ClassErrors:
    """A model class judged; errors are mean |predicted / measured - 1| [%], watts of shape (kernels,).

    ``out_watts``: every kernel predicted by the fit that has not seen its benchmark; ``strength`` is that of the fit to
    all rows, chosen by leave-one-benchmark-out; ``coefficients`` and ``problem`` are None for classes without any.
    """

    name: str
    train: float
    leave_one_kernel_out: float
    leave_one_benchmark_out: float
    interval: tuple[float, float]
    better_than_published: float
    watts: np.ndarray
    kernel_watts: np.ndarray
    out_watts: np.ndarray
    strength: float = 0.0
    coefficients: np.ndarray | None = None
    problem: Problem | None = None


# ---- the classes


def multipliers(table: KernelTable, free_base: bool = False, ordered: bool = True) -> Problem:
    """AccelWattch with a multiplier for every dynamic component, with orderings of their energies.

    With ``free_base``, constant power, static power (idle SMs with it) and the common scale that the multipliers are
    drawn to are free too, LOOSE-ly held at 1.
    """
    dynamic = tuple(part for part in table.parts if part not in UNFITTED)
    names = (*dynamic, "CONSTP", "STATICP", "common") if free_base else dynamic
    fixed = {part: table.parts.get(part, np.zeros(len(table.watts))) for part in UNFITTED}
    columns = [table.parts[part] for part in dynamic]
    offset = sum(fixed.values(), np.zeros(len(table.watts)))
    prior, center = np.eye(len(dynamic)), np.ones(len(dynamic))
    if free_base:
        columns += [fixed["CONSTP"], fixed["STATICP"] + fixed["IDLE_COREP"], np.zeros(len(offset))]
        offset = np.zeros_like(offset)
        prior = np.zeros((len(names), len(names)))
        prior[: len(dynamic), : len(dynamic)] = np.eye(len(dynamic))
        prior[: len(dynamic), -1] = -1.0
        prior[range(-3, 0), range(-3, 0)] = LOOSE
        center = np.concatenate([np.zeros(len(dynamic)), np.full(3, LOOSE)])
    ranges = _ranges(names, table.variant if ordered else "")
    return _problem(names, np.stack(columns, axis=1), offset, table, ranges, prior, center, STRENGTHS)


def one_scale(table: KernelTable) -> Problem:
    """One multiplier for all dynamic components."""
    offset = sum((table.parts[part] for part in UNFITTED), np.zeros(len(table.watts)))
    dynamic = np.sum([watts for part, watts in table.parts.items() if part not in UNFITTED], axis=0)
    return _problem(("dynamic",), dynamic[:, None], offset, table, _ranges(("dynamic",), ""))


def four_parameters(table: KernelTable) -> Problem:
    """Base power, active SMs, warp instructions and L2 sectors: four numbers that are not negative.

    Rates come from the counters of the HW variant; from watts, which are proportional to them, elsewhere.
    """
    columns = _rates(table)
    names = tuple(columns)
    ranges = Ranges(jnp.zeros(4), jnp.full(4, 1e4), jnp.zeros(4), (-1,) * 4)
    design = np.stack([values for values, _ in columns.values()], axis=1)
    problem = _problem(
        names, design, np.zeros(len(table.watts)), table, ranges, units=tuple(unit for _, unit in columns.values())
    )
    start = 0.25 * table.watts.mean() / design.mean(axis=0)
    return Problem(problem.names, problem.units, problem.linear, start, problem.strengths)


def _rates(table: KernelTable) -> dict[str, tuple[np.ndarray, str]]:
    ones, frame, value = np.ones(len(table.watts)), table.frame, constants()
    active = ones - table.parts["IDLE_COREP"] / value["idle_sm_w"] / value["reference_sms"]
    base = {"base": (ones, "W"), "active_sms": (active, "W")}
    sectors = [f"ctr_L2_{kind}" for kind in ("RH", "RM", "WH", "WM")]
    if table.variant == "hw" and {"act_TOT_INST", "time_s_hw", *sectors} <= set(frame.columns):
        nano_per_s = 1e-9 / frame["time_s_hw"].to_numpy(float)
        instructions, l2 = frame["act_TOT_INST"].to_numpy(float), frame[sectors].sum(axis=1).to_numpy(float)
        return base | {"warp_instruction": (instructions * nano_per_s, "nJ"), "l2_sector": (l2 * nano_per_s, "nJ")}
    return base | {"warp_instruction": (table.parts["IBP"], "W/W"), "l2_sector": (table.parts["L2CP"], "W/W")}


def _problem(
    names: tuple[str, ...],
    design: np.ndarray,
    offset: np.ndarray,
    table: KernelTable,
    ranges: Ranges,
    prior: np.ndarray | None = None,
    center: np.ndarray | None = None,
    strengths: tuple[float, ...] = (0.0,),
    units: tuple[str, ...] | None = None,
) -> Problem:
    prior = np.zeros((1, len(names))) if prior is None else prior
    center = np.zeros(1) if center is None else center
    numbers = [jnp.asarray(x, float) for x in (design, offset, table.watts, prior, center)]
    linear = LinearProblem(numbers[0], numbers[1], numbers[2], ranges, numbers[3], numbers[4])
    return Problem(names, units or ("1",) * len(names), linear, np.ones(len(names)), strengths)


def _ranges(names: tuple[str, ...], variant: str) -> Ranges:
    """Bounds of the multipliers, and orderings of a variant's energies: s_child >= s_parent E_parent / E_child.

    Published energies keep them to their last digit: the prior is feasible.
    """
    parents = [names.index(ORDERINGS[n]) if variant and ORDERINGS.get(n) in names else -1 for n in names]
    energy = ordered_energies(variant) if variant else {}
    ratio = [min(energy[names[p]] / energy[n], 1.0) if p >= 0 else 0.0 for n, p in zip(names, parents, strict=True)]
    return Ranges(jnp.full(len(names), LOW), jnp.full(len(names), HIGH), jnp.asarray(ratio), tuple(parents))


def ordered_energies(variant: str) -> dict[str, float]:
    """Return the published energy of an operation [pJ] of every component of one counter, as orderings compare it.

    An integer operation by half: its energy alone holds the register file's double clock.
    """
    energy = np.asarray(AccelWattch.variant(COEFFICIENTS_OF[variant]).energy_pj)
    found = {part: float(energy[rows[0]]) for part, rows in part_counters().items() if len(rows) == 1}
    return found | {"INTP": found["INTP"] / 2}


# ---- the judgement


def judge(name: str, table: KernelTable) -> ClassErrors:
    """Fit one of CLASSES and judge it by nested leave-one-out; 64-bit, all folds in one compiled call."""
    with jax.enable_x64(True):
        folds = Folds.of(table.groups)
        if name == "published":
            watts = sum(table.parts.values(), np.zeros(len(table.watts)))
            return _with_errors(name, table, watts, watts, watts)
        if name == "mean":
            return _with_errors(name, table, *_means(table, folds))
        if name == "average":
            both = [judge(part, table) for part in ("multipliers", "four_parameters")]
            watts = [np.mean([getattr(j, k) for j in both], axis=0) for k in ("watts", "kernel_watts", "out_watts")]
            return _with_errors(name, table, *watts)
        return _fitted(name, problem_of(name, table), table, folds, bend_of(name))


def bend_of(name: str) -> float | None:
    """Return the bend of a class's loss, None for squares."""
    return None if name == "ridge" else BEND


def problem_of(name: str, table: KernelTable) -> Problem:
    """Return the linear problem of a class that has coefficients; call it where 64 bits are enabled."""
    makers = {
        "multipliers": multipliers,
        "ridge": lambda t: multipliers(t, ordered=False),
        "base_and_multipliers": lambda t: multipliers(t, free_base=True),
        "four_parameters": four_parameters,
        "one_scale": one_scale,
    }
    return makers[name](table)


def _fitted(name: str, problem: Problem, table: KernelTable, folds: Folds, bend: float | None) -> ClassErrors:
    fits, levels = len(folds.weights), len(problem.strengths)
    # Fits of one strength stand together: they take about equally many steps.
    found = fit_all(problem, np.tile(folds.weights, (levels, 1)), np.repeat(problem.strengths, fits), bend)
    coefficients = np.asarray(found.coefficients).reshape(levels, fits, -1).swapaxes(0, 1)
    at_levels = np.asarray(problem.linear.watts(jnp.asarray(coefficients)))  # (fits, levels, rows)
    strengths, watts = _between(problem.strengths, at_levels)
    errors = np.abs(watts / table.watts - 1)
    rows, none = np.arange(len(table.watts)), frozenset[int]()
    strength = strengths[folds.strength(errors, none)]
    out, by_kernel = folds.left_out(errors, True), folds.left_out(errors, False)
    whole = fit_all(problem, folds.weights[folds.place[none]][None], np.array([strength]), bend)
    kept = np.asarray(whole.coefficients)[0]
    return _with_errors(
        name,
        table,
        np.asarray(problem.linear.watts(jnp.asarray(kept))),
        watts[(*by_kernel, rows)],
        watts[(*out, rows)],
        strength=strength,
        coefficients=kept,
        problem=problem,
    )


def _between(strengths: tuple[float, ...], watts: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Strengths with FINER more between each two, and the watts (fits, strengths, rows) at them, without overshoot."""
    if len(strengths) == 1:
        return list(strengths), watts
    at = np.log(strengths)
    places = np.arange((len(at) - 1) * FINER + 1) / FINER
    finer = np.interp(places, np.arange(len(at)), at)
    return np.exp(finer).tolist(), PchipInterpolator(at, watts, axis=1)(finer)


def fit_all(problem: Problem, weights: np.ndarray, strengths: np.ndarray, bend: float | None = BEND) -> Fits:
    """Fit a problem to each row of ``weights`` (fits, rows) with its strength (fits,), in one compiled call."""
    return solve(problem.linear, jnp.asarray(problem.start), jnp.asarray(weights), jnp.asarray(strengths), bend)


def _means(table: KernelTable, folds: Folds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = range(len(table.watts))
    outs = ([frozenset[int]() for _ in rows], [frozenset([i]) for i in rows], [folds.benchmark_of(i) for i in rows])
    watts = [[np.average(table.watts, weights=folds.weights[folds.place[out]]) for out in each] for each in outs]
    return tuple(np.asarray(w) for w in watts)  # pyright: ignore[reportReturnType]


def _with_errors(
    name: str, table: KernelTable, watts: np.ndarray, kernel_watts: np.ndarray, out_watts: np.ndarray, **rest
) -> ClassErrors:
    errors = [100 * np.abs(w / table.watts - 1) for w in (watts, kernel_watts, out_watts)]
    published = 100 * np.abs(sum(table.parts.values(), np.zeros(len(table.watts))) / table.watts - 1)
    train, kernel_out, benchmark_out = (float(e.mean()) for e in errors)
    return ClassErrors(
        name,
        train,
        kernel_out,
        benchmark_out,
        mean_interval(errors[2], table.groups),
        probability_lower(errors[2], published, table.groups),
        watts,
        kernel_watts,
        out_watts,
        **rest,
    )


# ---- the coefficients


@dataclass(frozen=True)
class Coefficient:
    """A fitted coefficient with its 95 % bootstrap interval, and the share of it that comes from the data, 0 to 1."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    share: float

    @property
    def identified(self) -> bool:
        """Whether the data move it more than the prior does: by half or more. Its value may still be pulled by the
        rest, which is in the interval of a board's coefficient."""
        return self.share >= 0.5


def coefficients(fitted: ClassErrors, table: KernelTable, draws: int = 200) -> tuple[list[Coefficient], float]:
    """Return the coefficients of a judged class with intervals, and the condition number of the misfit's Hessian."""
    assert fitted.problem is not None and fitted.coefficients is not None
    bend = bend_of(fitted.name)
    with jax.enable_x64(True):
        problem, at = fitted.problem, jnp.asarray(fitted.coefficients)
        weights = benchmark_draws(table.groups, draws)
        drawn = fit_all(problem, weights, np.full(draws, fitted.strength), bend).coefficients
        low, high = np.percentile(np.asarray(drawn), PERCENTILES, axis=0)
        known = identified(problem.linear, at, jnp.ones(len(table.watts)), fitted.strength, bend)
    columns = (problem.names, np.asarray(at).tolist(), problem.units, low.tolist(), high.tolist(), known.share.tolist())
    return [Coefficient(*row) for row in zip(*columns, strict=True)], known.condition
