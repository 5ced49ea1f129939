"""Expressions: arithmetic is evaluated, everything else is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.space.expression import parse_expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * a + b ** 2", [11.0, 22.0]),
        ("max(a, 2) - min(a, 2)", [1.0, 1.0]),
        ("-w.time_ms % 4", [1.0, 0.0]),
        ("1 < a <= 3 and not b == 3", [False, True]),
        ("sqrt(a * a) + log2(8)", [4.0, 6.0]),
    ],
)
def test_evaluates_arrays(text: str, expected: list) -> None:
    values = {"a": np.array([1.0, 3.0]), "b": np.array([3.0, 4.0]), "w.time_ms": np.array([7.0, 8.0])}
    np.testing.assert_allclose(parse_expression(text, "here")(values), expected)


@pytest.mark.parametrize("array_module", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a > 1) + (a > 2) + (a > 3)", [0, 1, 2, 3]),
        ("(a > 1) + (a > 2) >= 2", [False, False, True, True]),
        ("(a > 1) - (a > 2)", [0, 1, 0, 0]),
        ("-(a > 2)", [0, 0, -1, -1]),
        ("+(a > 2)", [0, 0, 1, 1]),
        ("(a > 1) * (a < 4) * 3", [0, 3, 3, 0]),
        ("(a > 1) / (a > 0)", [0, 1, 1, 1]),
        ("(a > 2) ** (a > 1)", [1, 0, 1, 1]),
        ("(a > 1 and a < 4) + (not a > 3) + (a < 2 or a > 2)", [2, 2, 3, 1]),
        ("max(a > 2, a < 2) - round(a > 3)", [1, 0, 1, 0]),
        ("(a > 2) > (a > 3)", [False, False, True, False]),
    ],
)
def test_what_is_true_counts_one_in_arithmetic(text: str, expected: list, array_module) -> None:
    expression, a = parse_expression(text, "here"), array_module.asarray([1.0, 2.0, 3.0, 4.0])
    found = expression({"a": a}, array_module)
    np.testing.assert_array_equal(found, expected)
    assert (found.dtype == bool) == expression.condition
    if array_module is jnp:
        np.testing.assert_array_equal(jax.jit(lambda a: expression({"a": a}, jnp))(a), expected)


def test_knows_its_names_and_whether_it_is_a_condition() -> None:
    expression = parse_expression("base.sm_count * 2 <= sm_count", "here")
    assert expression.names == ("base.sm_count", "sm_count")
    assert expression.condition
    assert not parse_expression("sm_count * 2", "here").condition
    assert parse_expression("base.decode.tbt_ms", "here").names == ("base.decode.tbt_ms",)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "f(a).b.c",
        "[1, 2]",
        "lambda: 1",
        "a if b else c",
        "'text'",
        "sqrt(1, 2)",
        "f(a)",
        "max()",
        "1 +",
        "",
        "a" * 2000,
        "(" * 500 + ")" * 500,
        "a := 1",
        "1e400",
        "x[0]",
        "f'{a}'",
    ],
)
def test_refuses_anything_but_arithmetic(text: str) -> None:
    with pytest.raises(InputError, match="here"):
        parse_expression(text, "here")


def test_unknown_name_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'sm_cuont'.*did you mean 'sm_count'"):
        parse_expression("sm_cuont > 3", "here", {"sm_count", "l2_mib"})


def test_numbers_follow_ieee_754_and_never_hang() -> None:
    assert parse_expression("9 ** 9 ** 9", "here")({}) == np.inf
    assert parse_expression("1 / 0 > 3", "here")({})
