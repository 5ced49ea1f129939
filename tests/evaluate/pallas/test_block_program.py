"""Lines on blocks of designs: the values of the program they come from, and the instructions of a GPU among them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.lines import Side
from dse.evaluate.pallas.block_program import BlockProgram
from dse.evaluate.partial_evaluation import Program

KERNELS, DESIGNS = 7, 8


def model(a, b, c, d):
    """Terms of a kernel (a, b), of what a group has in common (c), of a design (d) and of pairs, a flag among them."""
    common = jnp.where(a > c, a * c + jnp.sqrt(b), jnp.exp(-a / c))
    flag = jnp.logical_and(b > c, a < 2.0 * c)
    return jnp.where(flag, common / d, common + b * d) - a * d, b * c * d


@pytest.fixture
def numbers() -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(2)
    return tuple(draw.uniform(1, 9, n).astype(np.float32) for n in (KERNELS, KERNELS, 1, DESIGNS))


@pytest.mark.parametrize("common", [0, 1])
def test_a_block_computes_what_the_function_does(numbers: tuple[np.ndarray, ...], common: int) -> None:
    a, b, c, d = numbers
    program = Program(model, [a, b, Side.DESIGN, Side.DESIGN], KERNELS, True)
    block = BlockProgram(program, common, assembly=False)
    designs = block.of_designs({0: jnp.full(DESIGNS, c[0]), 1: jnp.asarray(d)})
    table = program.table([c, None], common)[0]
    for kernel in range(KERNELS):
        found = block.of_pairs(designs, list(block.rows[kernel]), list(table[:, kernel]))
        for x, y in zip(found, model(a[kernel], b[kernel], c[0], d), strict=True):
            np.testing.assert_allclose(x, np.broadcast_to(y, DESIGNS), rtol=1e-6)


def test_a_product_and_its_sum_are_one_instruction_of_a_gpu(numbers: tuple[np.ndarray, ...]) -> None:
    program = Program(model, [*numbers[:2], Side.DESIGN, Side.DESIGN], KERNELS, True)
    block = BlockProgram(program, assembly=True)

    def of_a_kernel(c: jax.Array, d: jax.Array) -> object:
        return block.of_pairs(block.of_designs({0: c, 1: d}), list(block.rows[0]), [])

    equations = jax.make_jaxpr(of_a_kernel)(*[jax.ShapeDtypeStruct((DESIGNS,), jnp.float32)] * 2).eqns
    written = [e.params["asm"] for e in equations if "inline_asm" in e.primitive.name]
    assert sum("fma.rn" in text for text in written) == 3  # a c + sqrt(b), common + b d, ... - a d
    assert sum("rcp.approx" in text for text in written) == 2
    assert sum("ex2.approx" in text for text in written) == 1


def test_a_term_that_is_no_number_is_refused() -> None:
    program = Program(lambda a, d: jnp.sum(jnp.stack([a, d]) * d), [np.arange(3.0), Side.DESIGN], 3, True)
    with pytest.raises(TypeError, match="array"):
        BlockProgram(program, assembly=False)
