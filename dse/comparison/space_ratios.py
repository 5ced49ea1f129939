"""The designs of a sweep held against its baseline and against each other, with the errors of their ratios."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from dse.comparison.ratio_error import Designs, RatioErrors, host_error, operand_types, ratio_errors, tensor_types
from dse.evaluate.area_elasticities import cost_slopes
from dse.evaluate.metric_error import metric_error
from dse.space.designs import of_table
from dse.space.links import OF_BASE
from dse.space.space import Space
from dse.timing.timing import causes_of


def space_ratio_errors(space: Space, baseline: pd.DataFrame, designs: pd.DataFrame) -> list[RatioErrors]:
    """Return the errors of ratios of each objective: place 0 is the baseline, the designs follow.

    ``baseline``: one row with its results, or none, and then the designs stand from place 0 on; ``designs``: rows with
    axes and results.
    """
    rows = pd.concat([baseline, designs], ignore_index=True)
    numbers = _numbers(space, len(baseline), designs)
    values = {name: rows[name].to_numpy(float) for name in rows.select_dtypes("number") if name not in numbers}
    values |= numbers
    workloads = {w.name: w for w in space.workloads if f"{w.name}.time_ms" in values}
    if len(workloads) == len(space.workloads) == len(space.weights):
        values["total.time_ms"] = np.asarray(space.total_ms(values), float)
    values |= {OF_BASE + name: value for name, value in _of_base(space, baseline).items()}
    variant = _variant(space, len(baseline), designs)
    made = Designs(
        numbers,
        values,
        {name: {c: values[f"{name}.{c}_ms"] for c in causes_of(w)} for name, w in workloads.items()},
        {name: tensor_types(workload) for name, workload in workloads.items()},
        {name: len(workload.operators) for name, workload in workloads.items()},
        {name: host_error(w, metric_error(space, f"{name}.time_ms")) for name, w in workloads.items()},
        lambda: cost_slopes(numbers, space.yield_model),
        variant,
        _kinds(space, workloads, variant),
    )
    return [ratio_errors(o.expression, o.sign, made, lambda name: metric_error(space, name)) for o in space.objectives]


def _numbers(space: Space, before: int, designs: pd.DataFrame) -> dict[str, np.ndarray]:
    """Attribute -> number of the base, ``before`` times, and of each design."""
    base, columns = space.base.numbers(), of_table(space, designs)
    count = len(designs)
    own = space.variants.of_bases(columns) if space.variants and count else {}
    return {
        name: np.concatenate([np.full(before, value), np.broadcast_to(columns.get(name, own.get(name, value)), count)])
        for name, value in base.items()
    }


def _variant(space: Space, before: int, designs: pd.DataFrame) -> np.ndarray | None:
    """The variant of the base, ``before`` times, and of each design; None of a plain space."""
    if space.variants is None:
        return None
    which = space.variants.of(of_table(space, designs)) if len(designs) else np.zeros(0, int)
    return np.concatenate([np.full(before, space.variants.home), which])


def _kinds(space: Space, workloads: Iterable[str], variant: np.ndarray | None) -> dict[str, np.ndarray]:
    """Workload -> a number for the data types of each design's kernels, of workloads whose variants differ in them."""
    if space.variants is None or variant is None:
        return {}
    found = {}
    for name in workloads:
        of_each = [_types(each.space, name) for each in space.variants.every]
        numbers = {types: number for number, types in enumerate(dict.fromkeys(of_each))}
        if len(numbers.keys() - {None}) > 1:
            found[name] = np.array([float(numbers[types]) for types in of_each])[variant]
    return found


def _types(space: Space | None, workload: str) -> frozenset[str] | None:
    """The data types of a workload in a variant's ``space``; None where the variant cannot be."""
    mine = () if space is None else (w for w in space.workloads if w.name == workload)
    return next(map(operand_types, mine), None)


def _of_base(space: Space, baseline: pd.DataFrame) -> Mapping[str, float]:
    """What expressions may name of the base: its attributes and its results."""
    results = baseline.select_dtypes("number").iloc[0].to_dict() if len(baseline) else {}
    named = {name.removeprefix(OF_BASE) for o in space.objectives for name in o.expression.names if "base." in name}
    return space.base.numbers() | {name: results.get(name, 1.0) for name in named if name not in space.base.entries}
