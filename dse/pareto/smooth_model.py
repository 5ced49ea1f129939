"""The model of a space, smooth and differentiable on its continuous axes.

Smooth means: linked whole numbers are not rounded, and steps in the model (CTAs on an SM, waves) are ramps
(:func:`dse.base.numerics.smooth_steps`). Costs of designs never come from here: they are evaluated exactly.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import derivatives_quick_to_compile
from dse.base.numerics import smooth_steps
from dse.evaluate.batching import float_type, in_blocks
from dse.evaluate.derivatives import with_slopes
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.explanation.sensitivity_steps import IDENTITY
from dse.hardware.schema import gpu_schema
from dse.pareto.violation import excess
from dse.space.axis import Axis
from dse.space.expression import FUNCTIONS
from dse.space.links import around
from dse.space.space import Space

BLOCK = 512
"""Designs differentiated together."""

UNROUNDED = SimpleNamespace(
    **{name: getattr(jnp, name) for name in FUNCTIONS if name not in ("min", "max")}
    | {name: getattr(jnp, name) for name in ("minimum", "maximum", "logical_not", "logical_and", "logical_or")}
    | {name: lambda x: x for name in ("ceil", "floor", "round")}
)
"""jax.numpy for expressions, without rounding."""


def continuous_axes(space: Space) -> list[Axis]:
    """Return the axes of real numbers with more than one value: the others have nothing between their values."""
    return [a for a in space.axes if a.attribute.type == "float" and a.name not in IDENTITY and len(a) > 1]


class Slopes(NamedTuple):
    """Designs under the smooth model, with their derivatives."""

    values: np.ndarray  # costs and constraints' excess, (designs, objectives + constraints)
    slopes: np.ndarray  # their derivatives, (designs, objectives + constraints, continuous axes)


class Coordinates:
    """Designs' places on the continuous axes: 0 at an axis's lowest value and 1 at its highest, in logarithms where
    both are above 0."""

    def __init__(self, axes: list[Axis]) -> None:
        self.names = [axis.name for axis in axes]
        self.low = np.asarray([min(axis.numbers) for axis in axes], float)
        self.high = np.asarray([max(axis.numbers) for axis in axes], float)
        self._log = self.low > 0

    def places(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the places of designs, shape (designs, axes)."""
        numbers = np.stack([np.asarray(columns[name], float) for name in self.names], axis=1)
        low, high = self._scaled(self.low), self._scaled(self.high)
        return (self._scaled(numbers) - low) / (high - low)

    def _scaled(self, numbers: np.ndarray) -> np.ndarray:
        return np.where(self._log, np.log(np.where(self._log, numbers, 1.0)), numbers)

    def columns(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Return the axes' numbers at places, six significant digits each, within the axes."""
        numbers = np.asarray(self._numbers(jnp.asarray(places), np), float)
        tidy = np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])(numbers)
        return dict(zip(self.names, np.clip(tidy, self.low, self.high).T, strict=True))

    def smooth_columns(self, places: Array) -> dict[str, Array]:
        """Return the numbers at places as they are, differentiable."""
        return dict(zip(self.names, self._numbers(places, jnp).T, strict=True))

    def _numbers(self, places: Any, xp: Any) -> Any:
        geometric = self._scaled(self.low) + places * (self._scaled(self.high) - self._scaled(self.low))
        return xp.where(self._log, xp.exp(xp.where(self._log, geometric, 0.0)), geometric)


class Smoothed:
    """The smooth model of a space: values and slopes of designs, in blocks, compiled once.

    ``of_base``: results of the base GPU that the space names, by name.
    """

    def __init__(self, space: Space, of_base: Mapping[str, np.ndarray]) -> None:
        self.space, self._of_base = space, of_base
        self.coordinates = Coordinates(continuous_axes(space))
        self._evaluator = Evaluator(space, Reasons(space), BLOCK)
        self._base = space.base.numbers()
        self._program = jax.jit(self._slopes, compiler_options=derivatives_quick_to_compile())

    def __call__(self, places: np.ndarray, columns: Mapping[str, np.ndarray]) -> Slopes:
        """Return values and slopes at ``places`` (designs, continuous axes).

        ``columns``: numbers of the other axes and of links that are choices, which stay.
        """
        inputs = jax.tree.map(lambda x: np.asarray(x, float_type()), (places, dict(columns)))
        return Slopes(*(x.astype(float) for x in in_blocks(self._program, BLOCK, *inputs)))

    def values(self, places: Array, columns: Mapping[str, Any]) -> Array:
        """Return costs and excess, shape (designs, objectives + constraints): the function that is differentiated."""
        numbers = dict(columns) | self.coordinates.smooth_columns(places)
        with smooth_steps():
            numbers = self._linked(numbers)
            results = self._evaluator.evaluate({name: numbers[name] for name in sorted(numbers)}, self._of_base)
        results["total.time_ms"] = self.space.total_ms(results)
        named = around(self._base) | dict(self._of_base) | results | numbers
        rows = [o.sign * results[o.name] for o in self.space.objectives]
        rows += [excess(constraint, named, jnp) for constraint in self.space.constraints]
        return jnp.stack([jnp.broadcast_to(row, places.shape[:1]) for row in rows], axis=1)

    def _linked(self, numbers: dict[str, Any]) -> dict[str, Any]:
        """Add the links' numbers, unrounded."""
        named = around(self._base) | numbers
        for name, expression in self.space.links:
            if name not in numbers:  # a choice stays
                value = jnp.broadcast_to(expression(named, UNROUNDED), next(iter(numbers.values())).shape)
                named[name] = numbers[name] = value
        return numbers

    def _slopes(self, places: Array, columns: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return values and slopes of a block, one axis at a time for all designs, since none depends on another."""

        return with_slopes(lambda there: self.values(there, columns), places)

    def staying(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return those of exact ``columns`` that a step on the continuous axes leaves as they are."""
        changing = set(self.coordinates.names)
        changing |= {name for name, _ in self.space.links if gpu_schema()[name].type in ("int", "float")}
        return {name: np.asarray(values, float) for name, values in columns.items() if name not in changing}
