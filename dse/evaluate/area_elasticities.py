"""How the predicted area of each of many designs hangs on the coefficients of the area model, and its cost on it."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dse.evaluate.batching import float_type, in_blocks, over_arrays
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.gpu import Gpu

EXACT = ("channel_bits",)
"""Columns of the model that are facts, not estimates."""

BLOCK = 256
"""Designs that a program takes at a time."""

STEP = 0.01
"""Share by which an area is moved to see how its cost follows it."""


def area_elasticities(numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return d ln(area) / d ln(coefficient) [1], (designs, coefficients), coefficients as in :func:`coefficients`."""
    area = DieArea.from_table()
    found = _in_blocks(lambda gpus: _elasticities(area, gpus), numbers)
    return found[:, [not is_exact(name) for name in coefficients()]]


@jax.jit
def _elasticities(model: DieArea, gpus: Gpu) -> jax.Array:
    """Forwards in each coefficient: backwards in all of them takes twice as long to compile."""
    numbers, model_of = ravel_pytree(model)

    def along(direction: jax.Array) -> jax.Array:
        def of_one(gpu: Gpu) -> jax.Array:
            return jax.jvp(lambda x: jnp.log(model_of(x).total(gpu)), (numbers,), (direction,))[1]

        return over_arrays(of_one, gpus)

    return jax.vmap(along)(jnp.diag(numbers)).T


def cost_slopes(numbers: Mapping[str, np.ndarray], yield_model: str) -> np.ndarray:
    """Return d ln(die_usd) / d ln(die_mm2) of designs [1], (designs,), by a step of STEP.

    ``numbers``: attribute -> (designs,).
    """
    area, cost = DieArea.from_table(), DieCost.from_table(yield_model)
    return _in_blocks(lambda gpus: _cost_slopes(area, cost, gpus), numbers)


@jax.jit
def _cost_slopes(area: DieArea, cost: DieCost, gpus: Gpu) -> jax.Array:
    def of_one(gpu: Gpu) -> jax.Array:
        die = area.total(gpu)
        return jnp.log(cost(die * (1 + STEP), gpu).cost_usd / cost(die, gpu).cost_usd) / STEP

    return over_arrays(of_one, gpus)


def _in_blocks(program: Callable[[Gpu], jax.Array], numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return what a program gives for designs, called with BLOCK of them at a time."""
    columns = {name: np.asarray(values, float_type()) for name, values in numbers.items()}
    return np.asarray(in_blocks(lambda gpus: program(Gpu.from_attributes(gpus)), BLOCK, columns))


def coefficients() -> list[str]:
    """Return the name of each number of the area model, in the order of its leaves: ``fma``, ``nodes.logic_density``.

    A column of a table stands there once a row.
    """
    leaves = jax.tree_util.tree_flatten_with_path(DieArea.from_table())[0]
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, leaf in leaves for _ in range(leaf.size)]


def is_exact(name: str) -> bool:
    """Whether a number of the model is a fact, not an estimate."""
    return name.split(".")[-1] in EXACT
