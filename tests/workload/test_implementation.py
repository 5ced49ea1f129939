"""Implementations by number, and coefficients of one of them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from dse.workload.implementation import IMPLEMENTATIONS, KINDS, implementation_index, of_implementation


class Costs(NamedTuple):
    """A coefficient for each implementation, and one that serves all."""

    each: jax.Array
    shared: float


COSTS = Costs(jnp.arange(float(len(IMPLEMENTATIONS))) * 10.0, 3.0)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_the_number_of_a_name_finds_its_coefficient(name: str) -> None:
    found = of_implementation(COSTS, implementation_index(name))
    assert float(found.each) == 10.0 * IMPLEMENTATIONS.index(name)
    assert found.shared == 3.0


def test_a_batch_of_kernels_has_each_its_own() -> None:
    index = jnp.array([implementation_index(name) for name in ("matrix", "fa3_decode", "matrix")])
    found = jax.vmap(lambda i: of_implementation(COSTS, i).each)(index)
    assert found.tolist() == (10.0 * index).tolist()


def test_no_name_stands_twice_and_an_unknown_one_has_no_number() -> None:
    assert len(set(IMPLEMENTATIONS)) == len(IMPLEMENTATIONS) == len(KINDS)
    with pytest.raises(ValueError):
        implementation_index("cutlass")
