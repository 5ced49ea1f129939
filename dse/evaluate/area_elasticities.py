"""How the predicted area of each of many designs hangs on each coefficient of the area model."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from dse.base.package_tables import read_table
from dse.evaluate.batching import float_type
from dse.evaluate.ratio_terms import Loading, terms
from dse.hardware.area import DieArea
from dse.hardware.gpu import Gpu

EXACT = ("channel_bits",)
"""Columns of the model that are facts, not estimates."""

QUANTILE = 1.2816
"""Standard deviations of a normal distribution from its middle to the ends of the interval that holds 80 %."""

BLOCK = 1024
"""Designs that a program takes at a time."""


def area_loading(numbers: Mapping[str, np.ndarray]) -> Loading:
    """Return the loading of the areas of designs on the coefficients of the area model.

    ``numbers``: attribute -> (designs,). The unknowns are the logarithms of the coefficients.
    """
    elasticities = area_elasticities(numbers)
    return Loading({"area": elasticities * coefficient_errors()}, {})


def area_elasticities(numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return d ln(area) / d ln(coefficient) [1], (designs, coefficients), coefficients as in :func:`coefficients`."""
    count = len(next(iter(numbers.values())))
    parts = []
    for start in range(0, count, BLOCK):
        some = {name: np.resize(values[start : start + BLOCK], BLOCK) for name, values in numbers.items()}
        gpus = Gpu.from_numbers({name: jnp.asarray(values, float_type()) for name, values in some.items()})
        parts.append(np.asarray(_elasticities(DieArea.from_table(), gpus))[: min(BLOCK, count - start)])
    return np.concatenate(parts)[:, [not is_exact(name) for name in coefficients()]]


@jax.jit
def _elasticities(model: DieArea, gpus: Gpu) -> jax.Array:
    def of_one(gpu: Gpu) -> jax.Array:
        slopes = jax.grad(lambda m: jnp.log(m.total(gpu)))(model)
        return jnp.concatenate([jnp.ravel(s * v) for s, v in zip(*map(jax.tree.leaves, (slopes, model)), strict=True)])

    return jax.vmap(of_one)(gpus)


def coefficients() -> list[str]:
    """Return the name of each number of the area model, in the order of its leaves: ``fma``, ``nodes.logic_density``.

    A column of a table stands there once a row.
    """
    leaves = jax.tree_util.tree_flatten_with_path(DieArea.from_table())[0]
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, leaf in leaves for _ in range(leaf.size)]


def is_exact(name: str) -> bool:
    """Whether a number of the model is a fact, not an estimate."""
    return name.split(".")[-1] in EXACT


def coefficient_errors() -> np.ndarray:
    """Return the standard deviation of the logarithm of each coefficient, (coefficients,): by its own interval where
    ``process/area.csv`` has one, else what is learnt from pairs of dies."""
    known = terms("area", "all")
    rows = {row["coefficient"]: row for row in read_table("process/area.csv")}
    found = []
    for name in coefficients():
        if is_exact(name):
            continue
        low, high = (float(rows.get(name, {}).get(end) or 0.0) for end in ("low", "high"))
        learnt = known["node" if name.startswith("nodes.") else "coefficient"]
        found.append(np.log(high / low) / (2 * QUANTILE) if 0.0 < low < high else learnt)
    return np.array(found)
