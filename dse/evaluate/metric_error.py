"""How far the metrics of a space can be trusted: the interval of each, and the designs beyond what was measured."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dse.base.error_interval import ErrorInterval
from dse.base.units import signed
from dse.evaluate.limit_ends import CLOCK, LimitEnds
from dse.hardware.area import DieArea
from dse.hardware.own_gpus import matching_name, sheets_of
from dse.hardware.presets import GpuSheet
from dse.hardware.schema import gpu_schema
from dse.power.power import PowerModel
from dse.space.links import linked_values
from dse.space.metrics import DESIGN_METRICS, USD, WORKLOAD_METRICS, named_metric
from dse.space.space import Objective, Space
from dse.timing.novelty import NOTHING_NEW, Novelty, novelty, widened
from dse.timing.product_error import fitted_products, with_fitted_products
from dse.timing.timing import TimingModel
from dse.workload.networks.mlp_kinds import EXPERT
from dse.workload.operator import Operator
from dse.workload.serving_engine import interval_of, runs_of
from dse.workload.workload import Workload

ON_TIME = ("time_ms", "ttft_ms", "tbt_ms")
ON_POWER = ("power_w",)
"""Metrics that one model alone predicts; ``PER_TIME`` and ``ENERGY`` follow from them."""

PER_TIME = ("tokens_per_s",)
ENERGY = ("energy_j", "joules_per_token")
PER_ENERGY = ("tokens_per_joule",)

_RUN = {"ttft_ms": "llm_prefill", "tbt_ms": "llm_decode_step_avg"}
"""Metric -> the measured runs of an engine that it stands for; all others follow from a workload's whole time."""

_RUN_OF_PHASE = {"prefill": "llm_prefill", "decode": "llm_decode_step_avg"}
"""Phase -> the runs that the time of a workload of it alone stands for; of several phases, llm_e2e."""

CALIBRATED = frozenset({"bf16", "fp16"})
"""Data types of the matrix products and attention that timing models were fitted to."""

KERNELS_ALONE = "kernels alone; messages between GPUs apart"
"""What an interval of a time is of where GPUs exchange messages and no engine's measured runs stand behind it."""

DENSE_ALONE = "dense products alone; those of experts uncalibrated"
"""The same where experts' products run, whose kernels nobody measured here."""

DENSE_KERNELS_ALONE = "dense kernels alone; messages apart, products of experts uncalibrated"

DENSE_RUNS = "runs of dense networks alone; experts uncalibrated"
"""The same under an engine: no measured run was of a network of experts."""

WITHOUT_EXPERTS = (DENSE_ALONE, DENSE_KERNELS_ALONE, DENSE_RUNS)
"""Scopes that leave out what most of the time of such a network is."""

LEADING = ("sm_count", "tensor_fma_bf16", "boost_clock_mhz", "l2_mib", "dram_bandwidth_gbs")
"""Attributes by which one design is held against the GPUs that were measured."""

MESSAGES = ("all_reduce", "all_to_all")
"""Kinds of operators that are messages between GPUs."""

UNPRICED = ("die_usd", "memory_usd")
"""Metrics that rest on published estimates of prices: nothing measured stands against them."""


@dataclass(frozen=True)
class MetricError:
    """What is known of a metric's error: ``error_interval``, None where no calibration gives one; ``exact`` where the
    metric follows from the design alone; ``scope``: what of the metric the error interval is of, "" for all of it."""

    error_interval: ErrorInterval | None
    exact: bool = False
    scope: str = ""

    @property
    def word(self) -> str:
        """What a table says beside the metric's unit: its interval, "uncalibrated", or nothing."""
        if self.exact:
            return ""
        if self.error_interval is None:
            return "uncalibrated"
        low, high = (100 * (x - 1) for x in (self.error_interval.low, self.error_interval.high))
        return f"{signed(low)} to {signed(high)} %"

    def interval(self, value: float) -> tuple[float, float] | None:
        """Return where the measured value would lie in 80 % of cases, in the metric's unit."""
        u = self.error_interval
        return None if u is None else (value * u.low, value * u.high)


def objective_error(space: Space, objective: Objective) -> MetricError:
    """Return how far an objective can be trusted.

    A composed expression carries no interval: its errors go together in ways that no calibration tells.
    """
    return metric_error(space, objective.expression.text)


def metric_error(space: Space, text: str) -> MetricError:
    """Return how far a metric can be trusted, given as in a space's file (``decode.tbt_ms``, ``die_mm2`` ...); of
    several variants, by the widest interval."""
    if space.variants:
        return _widest([metric_error(one, text) for one in space.variants.spaces])
    workload, metric = named_metric(text)
    named = [w for w in space.workloads if w.name == workload] or space.workloads
    intervals = _by_metric(
        lambda one: _time(space.model, named, one, space.base, _new_of_designs(space)),
        _power(space.model, space.power.model, named, space.base),
    )
    intervals |= {"die_mm2": DieArea.from_table().error_interval}
    if metric in intervals:
        return MetricError(intervals[metric], scope=_scope(metric, intervals[metric], named))
    exact = text in gpu_schema() or (text in DESIGN_METRICS and text not in UNPRICED)
    return MetricError(None, exact or (metric in WORKLOAD_METRICS and metric == "memory_gb"))


def _widest(errors: Sequence[MetricError]) -> MetricError:
    """Return what holds for all of some errors: none where one of them is not known."""
    known = [error.error_interval for error in errors if error.error_interval]
    scope = next((error.scope for error in errors if error.scope), "")
    if len(known) < len(errors):
        return MetricError(None, all(error.exact for error in errors), "")
    return MetricError(_span(known), False, scope)


def _span(known: Sequence[ErrorInterval]) -> ErrorInterval:
    source = "; ".join(dict.fromkeys(one.source for one in known))
    return replace(known[0], low=min(one.low for one in known), high=max(one.high for one in known), source=source)


def _of_variants(space: Space, interval: Callable[[Space], ErrorInterval | None]) -> ErrorInterval | None:
    """Return the widest interval of a space's variants; None where one of them has none."""
    assert space.variants
    every = [interval(one) for one in space.variants.spaces]
    known = [one for one in every if one]
    return _span(known) if len(known) == len(every) else None


def run_metric_errors(
    metrics: Iterable[str],
    workload: Workload,
    model: TimingModel,
    power: PowerModel,
    gpu: GpuSheet,
    most: float = math.inf,
    ends: LimitEnds | None = None,
) -> dict[str, MetricError]:
    """Return how far metrics of one workload on one GPU can be trusted, by their names (``tbt_ms`` ...).

    ``most``: what the board may draw over what it is predicted to [1]; ``ends``: what the error of the watts makes of
    its power limit (None: it has none).
    """
    watts, new = _power(model, power, [workload], gpu), _new_of_gpu(model, gpu)

    def time_of(one: str) -> ErrorInterval | None:
        interval = _time(model, [workload], one, gpu, new)
        return interval.with_factor(*ends.factors(one)) if interval and watts and ends else interval

    intervals = _by_metric(time_of, replace(watts, high=min(watts.high, most)) if watts else None)
    if watts and ends:
        intervals[CLOCK] = ends.of_clock
    return {
        name: MetricError(intervals[name], scope=_scope(name, intervals[name], [workload]))
        if name in intervals
        else MetricError(None, name == "memory_gb")
        for name in metrics
    }


def _scope(metric: str, interval: ErrorInterval | None, workloads: Sequence[Workload]) -> str:
    """What the error interval of a metric of some workloads leaves out; products were measured on single GPUs."""
    if interval is None or metric in (*ON_POWER, "die_mm2"):
        return ""
    alone = [operator for w in workloads if w.engine is None for operator in w.operators]
    messages, experts = any(o.kind in MESSAGES for o in alone), any(_unfitted_experts(o) for o in alone)
    scope = {(True, False): KERNELS_ALONE, (False, True): DENSE_ALONE, (True, True): DENSE_KERNELS_ALONE}
    served = any(o.name.startswith(EXPERT) for w in workloads if w.engine is not None for o in w.operators)
    return scope.get((messages, experts), DENSE_RUNS if served else "")


def _unfitted_experts(operator: Operator) -> bool:
    """Whether an operator is a product of experts whose kernels nobody measured."""
    return operator.name.startswith(EXPERT) and operator.kind == "gemm" and not fitted_products(operator)


def _by_metric(
    time_of: Callable[[str], ErrorInterval | None], power: ErrorInterval | None
) -> dict[str, ErrorInterval | None]:
    """The error interval of each metric of a workload that times (``time_of`` a metric) or powers decide."""
    time = time_of("time_ms")
    energy = time.times(power) if time and power else None
    return {
        **{metric: time_of(metric) for metric in ON_TIME},
        **dict.fromkeys(PER_TIME, time.of_inverse() if time else None),
        USD: time,
        **dict.fromkeys(ON_POWER, power),
        **dict.fromkeys(ENERGY, energy),
        **dict.fromkeys(PER_ENERGY, energy.of_inverse() if energy else None),
    }


def time_error_interval(space: Space, workload: str = "total", metric: str = "time_ms") -> ErrorInterval | None:
    """Return how far off a time of a workload (by name, or of all) may be; None where no calibration says so.

    None also for a trace, for products in types that were not fitted, such as tf32, and around a base GPU on which a
    calibration of single GPUs was not fitted. A serving engine brings its own interval, in which the kernels' errors
    are, of the runs that the ``metric`` stands for (first tokens: prefills); of several workloads the widest holds.
    """
    if space.variants:
        return _of_variants(space, lambda one: time_error_interval(one, workload, metric))
    named = [w for w in space.workloads if w.name == workload] or space.workloads
    return _time(space.model, named, metric, space.base, _new_of_designs(space))


def power_error_interval(space: Space) -> ErrorInterval | None:
    """Return how far off the watts of all workloads may be; None where :func:`time_error_interval` is None for their
    kernels or GPU, too: watts were measured of the same types."""
    if space.variants:
        return _of_variants(space, power_error_interval)
    return _power(space.model, space.power.model, space.workloads, space.base)


def _covered(workloads: Sequence[Workload]) -> bool:
    """Whether all products of some workloads are of types whose watts were fitted, too."""
    return all(len(w.implementations) and o.operands <= CALIBRATED for w in workloads for o in w.operators)


def uncovered_types(workloads: Sequence[Workload]) -> list[str]:
    """Return the data types of products and attention that no fit stands behind."""
    others = (o for w in workloads for o in w.operators if not (o.operands <= CALIBRATED or fitted_products(o)))
    return sorted(set().union(*(o.operands for o in others)) - CALIBRATED)


def _new_of_gpu(model: TimingModel, gpu: GpuSheet) -> Novelty:
    """What of a GPU is new to the fit of a model that has an interval for any; nothing of those that were fitted."""
    known = model.error_interval
    if known is None or not known.anywhere or matching_name(gpu, known.gpus, known.own):
        return NOTHING_NEW
    return novelty(gpu, _measured(known))


def _new_of_designs(space: Space) -> Novelty:
    """What is new of the designs of a space, by the one of which most is: each is a GPU that nobody has measured."""
    known = space.model.error_interval
    if known is None or not known.anywhere:
        return NOTHING_NEW
    fitted = _measured(known)
    return max((novelty(one, fitted) for one in _kinds(space)), key=lambda new: new.widening)


def _kinds(space: Space) -> list[GpuSheet]:
    """The base of a space in each memory type and of each compute capability that its axes have."""
    found = [space.base]
    for axis in (axis for axis in space.axes if axis.name in ("dram_type", "compute_capability")):
        found = [
            replace(sheet, entries=sheet.entries | {axis.name: replace(sheet.entries[axis.name], number=float(number))})
            for sheet in found
            for number in axis.numbers
        ]
    return found


def _applies_to(interval: ErrorInterval | None, gpu: GpuSheet) -> ErrorInterval | None:
    """The error interval where it is said of a GPU: one of those that were measured, or of any."""
    return interval if interval and (interval.anywhere or matching_name(gpu, interval.gpus, interval.own)) else None


def _power(model: TimingModel, power: PowerModel, workloads: Sequence[Workload], gpu: GpuSheet) -> ErrorInterval | None:
    """That of the watts, which are energy over time: none is known beside a time of which none is."""
    timed = _applies_to(model.error_interval, gpu) is not None and _covered(workloads)
    return _applies_to(power.error_interval, gpu) if timed else None


def _time(
    model: TimingModel, workloads: Sequence[Workload], metric: str, gpu: GpuSheet, new: Novelty
) -> ErrorInterval | None:
    """That of a time of workloads on a GPU, wider by what is ``new`` of it."""
    kernels = _applies_to(model.error_interval, gpu)
    if kernels is None or uncovered_types(workloads) or not all(len(w.implementations) for w in workloads):
        return None
    found = list(dict.fromkeys(with_fitted_products(_served(kernels, w, metric), [w], gpu) for w in workloads))
    low, high = min(u.low for u in found), max(u.high for u in found)
    whole = replace(kernels, low=low, high=high, source="; ".join(dict.fromkeys(u.source for u in found)))
    return widened(whole, new)


def _served(kernels: ErrorInterval, workload: Workload, metric: str) -> ErrorInterval:
    """Return the error interval of a workload's times: that of the ``kernels``, or of runs under its engine."""
    engine = workload.engine
    if engine is None:
        return kernels
    whole = _RUN_OF_PHASE[workload.phases[0].name] if len(workload.phases) == 1 else "llm_e2e"
    op = _RUN.get(metric, whole)
    low, high = interval_of(engine, op)
    # The engine's are of the log of predicted over measured; an Uncertainty holds measured over predicted.
    return replace(kernels, low=math.exp(-high), high=math.exp(-low), source=runs_of(engine, op))


def beyond(space: Space, error_interval: ErrorInterval) -> list[str]:
    """Return what of a space lies outside the GPUs that were measured, as "sm_count above 132": of its axes, and of
    LEADING what links or the base say."""
    if space.variants:
        return list(dict.fromkeys(text for one in space.variants.spaces for text in beyond(one, error_interval)))
    sheets = _measured(error_interval)
    said = []
    for axis in space.axes if sheets else ():
        if axis.attribute.choices or axis.attribute.type == "bool":
            values = [sheet.entries[axis.name].value for sheet in sheets]
            new = [str(value) for value in axis.values if value not in values]
            said += [f"{axis.name} {', '.join(new)}"] if new else []
    ranges = _ranges(space) if sheets else {}
    for name, (least, most) in ranges.items():
        values = [sheet.entries[name].number for sheet in sheets]
        said += [f"{name} below {min(values):g}"] if least < min(values) else []
        said += [f"{name} above {max(values):g}"] if most > max(values) else []
    return said


def _ranges(space: Space) -> dict[str, tuple[float, float]]:
    """The least and the greatest value of numbers among a space's axes, and of LEADING by its links or its base."""
    found = {
        axis.name: (min(axis.numbers), max(axis.numbers))
        for axis in space.axes
        if not (axis.attribute.choices or axis.attribute.type == "bool")
    }
    base = space.base.numbers()
    linked = {name for name, _ in space.links}
    for name in LEADING:
        if name in linked:
            values, attr = linked_values(base, space.links, space.axes, name), gpu_schema()[name]
            values = values[(values >= attr.low) & (values <= attr.high)]  # others are no designs
            found |= {name: (float(values.min()), float(values.max()))} if len(values) else {}
        elif name not in found:
            found[name] = (base[name], base[name])
    return found


def sheet_beyond(sheet: GpuSheet, error_interval: ErrorInterval) -> list[str]:
    """Return which of LEADING lie outside the GPUs that were measured on one design, as "sm_count 1000, above 188"."""
    sheets, numbers, said = _measured(error_interval), sheet.numbers(), []
    for name in LEADING if sheets else ():
        values = [one.numbers()[name] for one in sheets]
        if not min(values) <= numbers[name] <= max(values):
            low = numbers[name] < min(values)
            said.append(f"{name} {numbers[name]:g}, {f'below {min(values):g}' if low else f'above {max(values):g}'}")
    return said


def _measured(error_interval: ErrorInterval) -> list[GpuSheet]:
    """The GPUs behind an interval, those of a user's own among them."""
    return list(sheets_of(error_interval.gpus, error_interval.own).values())
