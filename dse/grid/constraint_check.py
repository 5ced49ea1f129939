"""The share of designs that each constraint leaves, before any kernel is timed: of attributes, areas and costs."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dse.base.compilation import quick_to_compile
from dse.evaluate.batching import float_type
from dse.evaluate.infeasibility import reasons_of
from dse.evaluate.variants.evaluator import evaluator_of
from dse.space.designs import baseline, sample_step, with_links
from dse.space.expression import Expression
from dse.space.links import OF_BASE
from dse.space.metrics import design_metrics
from dse.space.space import Space


class ConstraintCheck(NamedTuple):
    """A constraint and the share of designs that it leaves."""

    constraint: str
    share: float | None  # of the designs that satisfy it [1]; None where workloads decide it
    sentence: str = ""  # where it leaves none: what the designs have instead


def constraint_checks(space: Space) -> list[ConstraintCheck]:
    """Return what each constraint of a space leaves of all designs; of a large grid, of some 20,000."""
    if not space.constraints:
        return []
    designs = np.arange(0, space.size, sample_step(space.size))
    columns, base = with_links(space, space.at(designs)), baseline(space)
    # In the sweep's type of numbers: 110.409 is at least 110.409 in one type, but not one type's against another's.
    inputs = {name: np.append(column, base[name]).astype(float_type()) for name, column in columns.items()}
    values = _compiled(space)(inputs)
    of = "" if len(designs) == space.size else f" of {len(designs):,}"
    return [checked(constraint, values, of) for constraint in space.constraints]


def _compiled(space: Space) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return :func:`_untimed` as a program; of variants it calls one itself."""
    values = _untimed(space)
    return values if space.variants else jax.jit(values, compiler_options=quick_to_compile())


def _untimed(space: Space) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function from designs' columns (the base GPU last) to the metrics that no workload decides."""
    evaluator = evaluator_of(space, reasons_of(space))

    def values(columns: Mapping[str, Any]) -> dict[str, Any]:
        count = len(next(iter(columns.values())))
        whole = {name: jnp.broadcast_to(x, count) for name, x in evaluator.untimed(columns).items()}
        of_base = {OF_BASE + name: whole[name][-1] for name in design_metrics()}
        return of_base | {name: x[:-1] for name, x in whole.items()}

    return values


def checked(constraint: Expression, values: Mapping[str, Any], of: str) -> ConstraintCheck:
    """Return what a constraint leaves of designs with these values; ``of``: how many they are, where not all."""
    if not set(constraint.names) <= values.keys():
        return ConstraintCheck(constraint.text, None)
    share, side = float(np.mean(np.asarray(constraint(values, jnp)))), constraint.left()
    if share:
        return ConstraintCheck(constraint.text, share)
    numbers = np.asarray(side(values, jnp), float) if side else np.empty(0)
    finite = numbers[np.isfinite(numbers)]
    ends = list(dict.fromkeys(f"{end:.5g}" for end in (finite.min(), finite.max()))) if finite.size else []
    has = f": {side.text} is {' to '.join(ends)}" if side and ends else ""
    return ConstraintCheck(constraint.text, share, f"no design{of} is within {constraint.text}{has}")
