"""What the constraints of a space leave of its designs, as far as no kernel need be timed: attributes, areas, costs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from dse.compiling import quick_to_compile
from dse.space.designs import baseline, sample_step, with_links
from dse.space.expression import Expression
from dse.space.links import OF_BASE
from dse.space.metrics import design_metrics
from dse.space.space import Space
from dse.sweep.evaluate import Evaluator
from dse.sweep.reasons import Reasons


class Within(NamedTuple):
    """A constraint: the ``share`` of designs that it leaves [1], None where workloads decide it; ``told``: where it
    leaves none, what the designs have instead."""

    constraint: str
    share: float | None
    told: str = ""


def within(space: Space) -> list[Within]:
    """Return what each constraint of a space leaves of all designs; of a large grid, of some 20,000."""
    if not space.constraints:
        return []
    designs = np.arange(0, space.size, sample_step(space.size))
    columns, base = with_links(space, space.at(designs)), baseline(space)
    untimed = jax.jit(Evaluator(space, Reasons(space)).untimed, compiler_options=quick_to_compile())
    found = untimed({name: np.append(column, base[name]) for name, column in columns.items()})
    whole = {name: np.broadcast_to(np.asarray(x, float), len(designs) + 1) for name, x in found.items()}
    values = {OF_BASE + name: whole[name][-1] for name in design_metrics()}
    values |= {name: x[:-1] for name, x in whole.items()}
    of = "" if len(designs) == space.size else f" of {len(designs):,}"
    return [_within(constraint, values, of) for constraint in space.constraints]


def without_designs(space: Space) -> list[str]:
    """Return a sentence for each constraint that leaves none of the designs, whatever the workloads."""
    return [constraint.told for constraint in within(space) if constraint.told]


def _within(constraint: Expression, values: Mapping[str, Any], of: str) -> Within:
    if not set(constraint.names) <= values.keys():
        return Within(constraint.text, None)
    share, left = float(np.mean(constraint(values))), constraint.left()
    if share:
        return Within(constraint.text, share)
    numbers = np.asarray(left(values), float) if left else np.empty(0)
    finite = numbers[np.isfinite(numbers)]
    ends = list(dict.fromkeys(f"{end:.5g}" for end in (finite.min(), finite.max()))) if finite.size else []
    has = f": {left.text} is {' to '.join(ends)}" if left and ends else ""
    return Within(constraint.text, share, f"no design{of} is within {constraint.text}{has}")
