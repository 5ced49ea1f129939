"""How sure the order of two designs is: the interval of a ratio of predictions, and who is better how probably.

Two designs share most of their error. What their ratio keeps of it is learnt from pairs of real GPUs, both left out of
the fit, by the attributes in which they differ (``data/calibration/ratio_errors.csv``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dse.base.error_interval import DEVIATIONS
from dse.base.pareto_filter import pareto_mask
from dse.comparison.area_loading import area_loading
from dse.comparison.ratio_terms import NOTHING, Loading, distances, power_loading, time_loading
from dse.evaluate.metric_error import (
    ENERGY,
    ON_POWER,
    ON_TIME,
    PER_ENERGY,
    PER_TIME,
    UNPRICED,
    WITHOUT_EXPERTS,
    MetricError,
)
from dse.space.expression import Expression
from dse.space.links import OF_BASE
from dse.space.metrics import USD, named_metric
from dse.workload.workload import Workload

TIME_POWER = {
    **dict.fromkeys(ON_TIME, (1.0, 0.0)),
    **dict.fromkeys(PER_TIME, (-1.0, 0.0)),
    USD: (1.0, 0.0),
    **dict.fromkeys(ON_POWER, (0.0, 1.0)),
    **dict.fromkeys(ENERGY, (1.0, 1.0)),
    **dict.fromkeys(PER_ENERGY, (-1.0, -1.0)),
}
"""Metric of a workload -> the powers of time and of watts that it follows."""

STEP = 1e-3
"""Share by which a metric is moved to see how an expression follows it."""

DRAWS, FEWEST = 2000, 200
"""Draws of all errors from which the probability of a place on the front is counted, of few designs and of many: it is
sure to 0.01, and to 0.035."""

DRAWN = 1_000_000
"""Designs that are drawn altogether, unless that makes fewer draws than FEWEST."""

SEED = 0


@dataclass(frozen=True)
class Designs:
    """Designs whose errors are held against each other; the first one is the reference.

    ``numbers``: attribute -> (designs,); ``values``: metric -> (designs,), by the names of a space's file; ``stacks``:
    workload -> cause -> (designs,) [ms]; ``types``: workload -> the data types of its products; ``kernels``: workload
    -> how many operators it has; ``hosts``: workload -> standard deviation of the log error of its engine's host, 0
    without; ``cost_slope``: d ln(die_usd) / d ln(die_mm2), (designs,); ``variant``: whose kernels a design runs,
    (designs,), None where all run the same; ``kinds``: workload -> a number for the data types of each design's
    kernels, (designs,), where they differ.
    """

    numbers: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    stacks: Mapping[str, Mapping[str, np.ndarray]]
    types: Mapping[str, Iterable[str]]
    kernels: Mapping[str, int]
    hosts: Mapping[str, float]
    cost_slope: Callable[[], np.ndarray]
    variant: np.ndarray | None = None
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def area(self) -> Loading:
        """What the areas hang on."""
        return area_loading(self.numbers)

    @cached_property
    def alike(self) -> np.ndarray:
        """A number of each design that only designs of the same attributes share, (designs,)."""
        every = [np.asarray(self.numbers[name], float) for name in sorted(self.numbers)]
        table = np.stack([*every, *([] if self.variant is None else [self.variant])], axis=1)
        return np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)

    def time(self, workload: str) -> Loading:
        """Return what the times of a workload hang on."""
        far = distances(self.numbers, self.types[workload], self.kinds.get(workload))
        of_host = self.hosts[workload]
        return time_loading(workload, far, self.stacks[workload], self.kernels[workload], of_host)

    def power(self, workload: str) -> Loading:
        """Return what the watts of a workload hang on."""
        return power_loading(workload, distances(self.numbers, self.types[workload]))


@dataclass(frozen=True)
class RatioErrors:
    """One objective of designs, (designs,) ``values``, and what the errors of its ratios hang on.

    ``loading`` is None where no calibration gives an interval, for the ``reason``. ``sign``: +1 where less is better.
    """

    values: np.ndarray
    sign: float
    loading: Loading | None
    reason: str
    alike: np.ndarray

    def take(self, places: slice) -> "RatioErrors":
        """Return some of the designs."""
        loading = self.loading and self.loading.take(places)
        return replace(self, values=self.values[places], loading=loading, alike=self.alike[places])

    def spread(self, first: np.ndarray | int, second: np.ndarray | int) -> np.ndarray:
        """Return the standard deviation of the log error of ``second`` over ``first``, both places of designs."""
        assert self.loading is not None
        shared = (x[second] - x[first] for x in self.loading.shared.values())
        variance = sum((np.sum(x**2, axis=-1) for x in shared), np.zeros(()))
        own = sum((x[first] ** 2 + x[second] ** 2 for x in self.loading.own.values()), np.zeros(()))
        return np.sqrt(variance + np.where(self.alike[first] == self.alike[second], 0.0, own))

    def ratio_interval(self, first: int, second: int) -> tuple[float, float] | None:
        """Return where SHARE of measured ratios of ``second`` over ``first`` lie; None where nothing says so."""
        if self.loading is None:
            return None
        ratio, half = self.values[second] / self.values[first], DEVIATIONS * float(self.spread(first, second))
        return float(ratio * np.exp(-half)), float(ratio * np.exp(half))

    def probability_better(self, first: np.ndarray | int, second: np.ndarray | int) -> np.ndarray | None:
        """Return how probably ``second`` is better than ``first``, errors being normal; a half where both are alike."""
        if self.loading is None:
            return None
        gain = -self.sign * np.log(self.values[second] / self.values[first])
        spread = self.spread(first, second)
        sure = np.where(gain == 0, 0.5, gain > 0)
        return np.where(spread > 0, ndtr(gain / np.where(spread > 0, spread, 1.0)), sure)

    def inseparable(self, first: np.ndarray | int, second: np.ndarray | int) -> np.ndarray:
        """Return whether the interval of the ratio holds 1: either may be better, by 10 % at least."""
        probability = self.probability_better(first, second)
        assert probability is not None
        return (probability > 1 - ndtr(DEVIATIONS)) & (probability < ndtr(DEVIATIONS))


def host_error(workload: Workload, time: MetricError) -> float:
    """Return the standard deviation of the log error of a workload's host, 0 without an engine: that of the runs that
    its engine was fitted to, ``time``."""
    known = time.error_interval
    return 0.0 if workload.engine is None or known is None else float(np.log(known.high / known.low)) / (2 * DEVIATIONS)


def tensor_types(workload: Workload) -> set[str]:
    """Return the data types that a workload's products run in on tensor cores."""
    return {name for operator in workload.operators for name in operator.tensor_types()}


def operand_types(workload: Workload) -> frozenset[str]:
    """Return the data types that a workload's products and attention read and compute in."""
    return frozenset().union(*(operator.operands for operator in workload.operators))


def ratio_errors(
    expression: Expression, sign: float, designs: Designs, error_of: Callable[[str], MetricError]
) -> RatioErrors:
    """Return the errors of ratios of an objective, an ``expression`` of metrics.

    ``error_of``: how far a metric can be trusted; without a calibration its ratios have no interval either. Prices
    count as stated, so that of a cost the area's error remains.
    """
    values = np.asarray(expression(designs.values), float)
    values = np.broadcast_to(values, designs.alike.shape)
    if not (values > 0).all():
        return RatioErrors(values, sign, None, f"{expression.text} is not above 0 everywhere", designs.alike)
    total = NOTHING
    for name in _of_designs(expression.names, designs):
        found = _loading(name, designs, error_of)
        if isinstance(found, str):
            return RatioErrors(values, sign, None, found, designs.alike)
        if found is not NOTHING:
            total = total.plus(found.times(_elasticity(expression, name, designs)))
    return RatioErrors(values, sign, total, "", designs.alike)


def _of_designs(names: Sequence[str], designs: Designs) -> list[str]:
    return [name for name in names if not name.startswith(OF_BASE) and name in designs.values]


def _elasticity(expression: Expression, name: str, designs: Designs) -> np.ndarray:
    """d ln(expression) / d ln(metric) at each design, (designs,)."""
    up, down = (
        np.asarray(expression({**designs.values, name: designs.values[name] * np.exp(step)}), float)
        for step in (STEP, -STEP)
    )
    return np.broadcast_to((np.log(up) - np.log(down)) / (2 * STEP), designs.alike.shape)


def _loading(name: str, designs: Designs, error_of: Callable[[str], MetricError]) -> Loading | str:
    """What a metric hangs on, or why nothing says so."""
    if name == "total.time_ms":
        return _total(designs, error_of)
    workload, metric = named_metric(name)
    if metric in UNPRICED:
        return designs.area.times(designs.cost_slope()) if metric == "die_usd" else NOTHING
    error = error_of(name)
    if error.exact:
        return NOTHING
    if error.error_interval is None:
        return f"{name} is uncalibrated"
    if error.scope in WITHOUT_EXPERTS:
        return f"{name}: {error.scope}"
    if metric == "die_mm2":
        return designs.area
    if metric not in TIME_POWER:  # the clock that a limit leaves
        return f"no pairs of real GPUs tell ratios of {name}"
    time, watts = TIME_POWER[metric]
    found = designs.time(workload).times(time) if time else NOTHING
    return found.plus(designs.power(workload).times(watts)) if watts else found


def _total(designs: Designs, error_of: Callable[[str], MetricError]) -> Loading | str:
    """What the time of all workloads hangs on: each by its part of the stack."""
    total: Loading = NOTHING
    whole = {name: sum(stack.values(), np.zeros(())) for name, stack in designs.stacks.items()}
    for name, ms in whole.items():
        found = _loading(f"{name}.time_ms", designs, error_of)
        if isinstance(found, str):
            return found
        total = total.plus(found.times(ms / sum(whole.values(), np.zeros(()))))
    return total


def probability_on_front(objectives: Sequence[RatioErrors], draws: int | None = None) -> np.ndarray | None:
    """Return how probably no other design dominates each one, (designs,); None where an objective has no errors.

    Counted over ``draws`` (by default as many as DRAWN allows) of all unknowns from a fixed seed, in each of which the
    objectives of all designs move together as :func:`ratio_errors` says; memory is that of one draw.
    """
    if any(one.loading is None for one in objectives) or not objectives or not len(objectives[0].values):
        return None
    random, alike = np.random.default_rng(SEED), objectives[0].alike
    places = np.unique(alike, return_inverse=True)[1]
    draws = draws or min(max(DRAWN // len(alike), FEWEST), DRAWS)
    blocks = {name: x.shape[1] for one in objectives for name, x in (one.loading or NOTHING).shared.items()}
    sources = sorted({name for one in objectives for name in (one.loading or NOTHING).own})
    on_front = np.zeros(len(alike))
    for _ in range(draws):
        shared = {name: random.standard_normal(size) for name, size in sorted(blocks.items())}
        own = {name: random.standard_normal(places.max() + 1)[places] for name in sources}
        on_front += pareto_mask(np.stack([_drawn(one, shared, own) for one in objectives], axis=1))
    return on_front / draws


def _drawn(one: RatioErrors, shared: Mapping[str, np.ndarray], own: Mapping[str, np.ndarray]) -> np.ndarray:
    """The logarithms of an objective with errors drawn, less being better, (designs,)."""
    loading = one.loading or NOTHING
    error = sum((x @ shared[name] for name, x in loading.shared.items()), np.zeros(()))
    error = error + sum((x * own[name] for name, x in loading.own.items()), np.zeros(()))
    return one.sign * (np.log(one.values) + error)
