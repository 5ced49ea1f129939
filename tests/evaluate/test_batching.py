"""Functions of scalars on arrays, and programs called in blocks: a loop over all places says the same."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.batching import in_blocks, in_parts, needed_by, over_arrays, with_kernel_axis
from dse.evaluate.platform import CPU


def product(a: dict[str, Any], b: Any) -> dict[str, Any]:
    return {"both": a["p"] * b + a["q"], "first": a["q"] * 2, "none": 1.0}


@pytest.mark.parametrize(
    ("p", "q", "b", "shape"),
    [
        ((3, 1), (3, 1), (4,), (3, 4)),
        ((3,), (), (3,), (3,)),
        ((), (1, 1), (1,), (1, 1)),
        ((), (), (), ()),
        ((2, 3), (3,), (2, 1), (2, 3)),
    ],
)
def test_arrays_broadcast_as_those_of_numpy(p, q, b, shape):
    rng = np.random.default_rng(0)
    record, other = {"p": rng.uniform(size=p), "q": rng.uniform(size=q)}, rng.uniform(size=b)
    mapped = over_arrays(product, record, other)
    assert all(np.shape(x) == shape for x in mapped.values())
    np.testing.assert_allclose(mapped["both"], np.broadcast_to(record["p"] * other + record["q"], shape), rtol=1e-6)


def test_a_term_is_computed_on_the_axes_that_it_depends_on():
    designs, kernels = np.ones((3, 1)), np.ones(4)
    text = str(jax.make_jaxpr(lambda d, k: over_arrays(lambda a, b: jnp.sin(a) * jnp.cos(b), d, k))(designs, kernels))
    assert "f32[3] = sin" in text and "f32[4] = cos" in text


def test_numbers_stay_numbers_beside_arrays_with_an_axis_for_kernels():
    wide = with_kernel_axis({"varied": np.ones(3), "fixed": 2.0})
    assert wide["varied"].shape == (3, 1) and wide["fixed"] == 2.0


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_blocks_are_full_and_give_every_row_once(rows):
    sizes = []

    def program(x: np.ndarray, both: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        sizes.append(len(x))
        return {"sum": x + both["y"].sum(axis=1)}

    x, y = np.arange(rows, dtype=float), np.ones((rows, 2))
    found = in_blocks(program, 4, x, {"y": y})
    assert set(sizes) == {4} and len(sizes) == -(-rows // 4)
    np.testing.assert_array_equal(found["sum"], x + 2)


@pytest.mark.parametrize("designs", [CPU.parts * 3, 5])
def test_parts_are_put_together_again(designs):
    rows = jnp.arange(2.0 * designs).reshape(2, designs)
    (doubled,) = in_parts(lambda arrays: [2 * arrays[0]], [rows])
    np.testing.assert_array_equal(doubled, 2 * rows)


def test_which_arguments_a_result_needs() -> None:
    def function(a: dict[str, jax.Array], b: jax.Array) -> jax.Array:
        unused = a["y"] * b
        return jnp.where(a["x"] > 0, a["x"], 0.0) + 0.0 * unused.size

    one = jax.ShapeDtypeStruct((3,), jnp.float32)
    assert needed_by(function, {"x": one, "y": one}, one) == ({"x": True, "y": False}, False)
