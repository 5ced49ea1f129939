"""What a run shows first: what takes the time of each phase, in words."""

from dse.evaluate.limit_ends import CLOCK
from dse.evaluate.run import RunResult
from dse.explanation.cause_words import held_by

LEAST_LOSS = 0.995
"""A clock that the power limit leaves above this share is a whole one, in whole percent."""


def held_sentences(result: RunResult) -> list[str]:
    """Return what takes the time of each phase, and what the power limit takes of the clock."""
    stacks = {phase.name: result.stack(phase.name) for phase in result.workload.phases}
    said = [
        f"{name.capitalize()} takes {four_digits(sum(stack.values()))} ms: {held_by(stack)}."
        for name, stack in stacks.items()
    ]
    left = result.metrics[CLOCK][0] if CLOCK in result.metrics else 1.0
    if left < LEAST_LOSS:
        said.append(f"The power limit takes {100 * (1 - left):.0f} % of the clock.")
    return said


def four_digits(value: float) -> str:
    """Return a number with four digits, and the whole number where it has more."""
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e9 else f"{value:,.4g}"
