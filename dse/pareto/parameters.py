"""Axes of a space as parameters of Optuna: by their values, or by their places where a sampler needs an order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.base.extras import extra
from dse.pareto.local_search import SearchGrid
from dse.space.axis import Axis

with extra("search", "a search"):
    from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution


class Parameter:
    """An axis as a parameter: its values where they are evenly spaced whole numbers or names, else its places.

    Optuna's own samplers learn from the order of values, which a list of choices does not tell them.
    """

    def __init__(self, axis: Axis) -> None:
        self.name, self._values = axis.name, axis.values
        numbers = np.asarray(axis.numbers)
        self.distribution: BaseDistribution
        if _is_named(axis):
            self.distribution = CategoricalDistribution(self._values)
        elif _step(numbers) and (numbers == np.round(numbers)).all():
            self.distribution = IntDistribution(int(numbers[0]), int(numbers[-1]), step=int(_step(numbers)))
        else:
            self.name = f"{axis.name} (place)"
            self.distribution = IntDistribution(0, len(numbers) - 1)
            self._values = list(range(len(numbers)))
        self._digits = {value: digit for digit, value in enumerate(self._values)}

    def value(self, digit: int) -> Any:
        """Return the parameter's value at a place of the axis."""
        value = self._values[int(digit)]
        return int(value) if isinstance(self.distribution, IntDistribution) else value

    def has(self, value: Any) -> bool:
        """Return whether a value is one of the axis."""
        return value in self._digits

    def digit(self, value: Any) -> int:
        """Return the place of a value on the axis; raises KeyError where it is none of the axis."""
        return self._digits[value]


class ValueParameter(Parameter):
    """An axis as a parameter by its values alone; those that are not evenly spaced whole numbers are choices.

    Optuna's steps of a real parameter are sums that miss the axis' own values in the last digit.
    """

    def __init__(self, axis: Axis) -> None:
        super().__init__(axis)
        if self.name != axis.name:
            self.name, self._values = axis.name, axis.values
            self.distribution = CategoricalDistribution(self._values)
            self._digits = {value: digit for digit, value in enumerate(self._values)}

    def suggest(self, trial: Any) -> Any:
        """Return the value that a trial's sampler chooses."""
        if isinstance(self.distribution, IntDistribution):
            low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
            return trial.suggest_int(self.name, low, high, step=step)
        return trial.suggest_categorical(self.name, self._values)


def design_numbers(
    parameters: Sequence[Parameter], grid: SearchGrid, designs: Sequence[Mapping[str, Any]]
) -> np.ndarray:
    """Return the numbers in the grid of designs, each the values of its parameters by name."""
    digits = [[parameter.digit(design[parameter.name]) for parameter in parameters] for design in designs]
    return grid.index(np.asarray(digits, np.int64).reshape(len(designs), len(parameters)))


def _is_named(axis: Axis) -> bool:
    return bool(axis.attribute.choices) or axis.attribute.type == "bool"


def _step(numbers: np.ndarray) -> float:
    """Return the step of evenly rising numbers, 1 of a single one, 0 of others."""
    steps = np.diff(numbers)
    even = (steps > 0).all() and (steps == steps[:1]).all()
    return (float(steps[0]) if len(steps) else 1.0) if even else 0.0
