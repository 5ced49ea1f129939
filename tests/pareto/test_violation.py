"""The size of a miss is 0 exactly where a condition holds."""

import numpy as np
import pytest

from dse.pareto.violation import violation
from dse.space.expression import parse_expression

VALUES = {"a": np.array([0.0, 1.0, 2.0, 5.0]), "b": np.array([2.0, 2.0, 2.0, 0.0])}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <= 2", [0, 0, 0, 1.5]),
        ("a < 2", [0, 0, 1e-9, 1.5]),
        ("a >= b", [1, 0.5, 0, 0]),
        ("a <= 1 and b >= 4", [0.5, 0.5, 1.5, 5]),
        ("a <= 1 or b >= 4", [0, 0, 0.5, 1]),
        ("a == 2", [1, 1, 0, 1]),
        ("not (a > 1)", [0, 0, 1, 1]),
        ("0 <= a <= 1", [0, 0, 1, 4]),
        ("not 0 <= a <= 1", [1, 1, 0, 0]),
        ("a - 2 <= 0", [0, 0, 0, 0.6]),
        ("0 >= a - 2 * b", [0, 0, 0, 1]),
        ("a / b <= 1", [0, 0, 0, 1e30]),
        ("(a > 0) + (a > 1) >= 2", [1, 0.5, 0, 0]),
        ("(a > 1) >= (b > 1)", [1, 1, 0, 0]),
    ],
)
def test_misses_by_hand(text, expected):
    condition = parse_expression(text, "here", VALUES)
    misses = violation(condition, VALUES)
    assert np.broadcast_to(misses, 4) == pytest.approx(expected)
    assert np.array_equal(np.broadcast_to(misses, 4) == 0, condition(VALUES))
