"""A few designs of a space under other numbers than its own: of its base GPU, of the area, cost and power models.

Programs that workloads share evaluate them (:mod:`dse.evaluate.shared_programs`); numbers are their arguments, so that
none of them is compiled again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.evaluate.batching import over_arrays
from dse.evaluate.evaluation import Evaluation, WorkloadResult, gpu_record
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import workload_columns
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.gpu import Gpu
from dse.hardware.peak import PEAK_METRICS, peak_tflops
from dse.hardware.schema import gpu_schema
from dse.power.power import PowerModel
from dse.power.sequence import LaunchSequence
from dse.space import links
from dse.space.links import OF_BASE
from dse.space.space import Space

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Numbers:
    """What designs of a space are computed with beside their axes.

    ``linked``: attribute -> factor on what its link gives the designs, where the link does not follow the base's number
    [1].
    """

    base: Mapping[str, float]
    linked: Mapping[str, float]
    area: DieArea
    cost: DieCost
    power: PowerModel

    @classmethod
    def of(cls, space: Space) -> "Numbers":
        """Return a space's own."""
        power = space.power.model
        return cls(space.base.numbers(), {}, power.area, DieCost.from_table(space.yield_model), power)

    def with_area(self, area: DieArea) -> "Numbers":
        """Return the numbers with another area model, which decides areas and, by them, watts."""
        return replace(self, area=area, power=self.power.with_area(area))


class Answers(NamedTuple):
    """What designs answer under several settings of the numbers: NumPy arrays."""

    objectives: np.ndarray
    """(settings, designs, objectives), each in its unit; NaN where a design has none."""
    codes: np.ndarray
    """(settings, designs): 0 where a design can be had, else the number of the reason why not (of Reasons)."""


def answers(
    space: Space, axes: Columns, settings: Sequence[Numbers], evaluations: Sequence[Evaluation], reasons: Reasons
) -> Answers:
    """Return what the base GPU, as design 0, and the designs of ``axes`` (designs,) answer under each of ``settings``.

    The first setting is the space's own; ``evaluations`` are those of its workloads, of at most DESIGNS designs.
    """
    own = settings[0]
    timed = [own, *(s for s in settings if not _times_alike(s, own))]
    columns = [design_columns(space, axes, s) for s in timed]
    place = {id(s): k for k, s in enumerate(timed)}
    gpus = [columns[place.get(id(s), 0)] for s in settings]
    every = [_phases(evaluation, columns, settings, place) for evaluation in evaluations]
    results = _untimed(settings, gpus)
    for workload, (phases, _) in zip(space.workloads, every, strict=True):
        results |= workload_columns(workload, phases, space.usd_per_hour)
    results["total.time_ms"] = space.total_ms(results)
    of_base = {name: np.asarray(results[name]).reshape(len(settings), -1) for name in space.of_base()}
    results |= {OF_BASE + name: np.repeat(x[:, 0], x.shape[1]) for name, x in of_base.items()}
    codes = np.asarray(reasons.codes(results, [can_run for _, can_run in every]))
    shape = (len(settings), len(gpus[0]["sm_count"]))
    found = {o.name: np.broadcast_to(o.expression(results, np), codes.shape) for o in space.objectives}
    codes, lacking = reasons.add_non_finite(codes, found)
    empty = reasons.empty(codes, lacking, found)
    values = np.stack([np.where(empty[name], np.nan, values) for name, values in found.items()], axis=-1)
    return Answers(values.astype(float).reshape(*shape, -1), codes.reshape(shape))


def design_columns(space: Space, axes: Columns, numbers: Numbers) -> Columns:
    """Return every attribute of the base GPU, as design 0, and of the designs of ``axes``, each (designs,)."""
    rules = [(name, _Scaled(e, numbers.linked[name]) if name in numbers.linked else e) for name, e in space.links]
    moved = links.with_links(numbers.base, rules, axes)  # pyright: ignore[reportArgumentType]
    count = len(next(iter(axes.values()))) if axes else 0
    designs = {name: np.broadcast_to(moved.get(name, numbers.base[name]), count) for name in gpu_schema()}
    return {name: np.concatenate([[numbers.base[name]], values]) for name, values in designs.items()}


class _Scaled:
    """A link's expression whose value is multiplied by a factor."""

    def __init__(self, expression: Any, factor: float) -> None:
        self._expression, self._factor = expression, factor

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return self._expression(values) * self._factor


def _times_alike(numbers: Numbers, own: Numbers) -> bool:
    return numbers.base == own.base and not numbers.linked


def _phases(
    evaluation: Evaluation, columns: Sequence[Columns], settings: Sequence[Numbers], place: Mapping[int, int]
) -> tuple[dict[str, LaunchSequence], np.ndarray]:
    """Return a workload's phases under all settings, and 1 where an operator has a kernel that runs, setting after
    setting: (settings * designs, ...)."""
    timed = evaluation.on_columns({name: np.concatenate([c[name] for c in columns]) for name in columns[0]})
    count = len(columns[0]["sm_count"])
    parts = [_part(timed, slice(k * count, (k + 1) * count)) for k in range(len(columns))]
    boards = evaluation.boards(parts[0])
    phases = [parts[place[id(s)]].phases if id(s) in place else boards(s.power) for s in settings]
    can_run = [np.asarray(parts[place.get(id(s), 0)].timing.feasible) for s in settings]
    return jax.tree.map(lambda *x: np.concatenate(x), *phases), np.concatenate(can_run)


def _part(result: WorkloadResult, rows: slice) -> WorkloadResult:
    """Return some designs of a result."""
    fields = ("phases", "chosen", "timing", "power", "settled", "gpus")
    return replace(result, **{name: jax.tree.map(lambda x: x[rows], getattr(result, name)) for name in fields})


def _untimed(settings: Sequence[Numbers], columns: Sequence[Columns]) -> dict[str, Any]:
    """Return what no workload decides, (settings * designs,): attributes, the base's too, areas, costs, peaks."""
    results: dict[str, Any] = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
    count = len(columns[0]["sm_count"])
    results |= {OF_BASE + name: np.repeat([s.base[name] for s in settings], count) for name in columns[0]}
    dies = [_dies(s.area, s.cost, gpu_record(c)) for s, c in zip(settings, columns, strict=True)]
    parts = [np.concatenate([np.asarray(x) for x in column]) for column in zip(*dies, strict=True)]
    results |= dict(zip(("die_mm2", "die_usd", "memory_usd"), parts, strict=True))
    return results | {name: peak_tflops(results, "tensor", kind.name) for name, kind in PEAK_METRICS.items()}


@quick_filter_jit
def _dies(area: DieArea, cost: DieCost, gpus: Gpu) -> tuple[Array, Array, Array]:
    """Area [mm2] and cost [USD] of GPUs' dies, and of their memory [USD]."""

    def die(gpu: Gpu) -> tuple[Array, Array, Array]:
        mm2 = area.total(gpu)
        of_gpu = cost(mm2, gpu)
        return mm2, of_gpu.cost_usd, of_gpu.memory_usd

    return over_arrays(die, gpus)
