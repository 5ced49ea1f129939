"""What is kept of designs: the same in whatever order and parts they come."""

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.grid.accumulator import TOP, Accumulator


@pytest.mark.parametrize("objectives", [1, 3])
def test_folds_do_not_depend_on_order_or_parts(objectives: int) -> None:
    random, signs = np.random.default_rng(0), [1.0, -1.0, 1.0][:objectives]
    values = np.exp(random.normal(size=(objectives, 600))).round(1)
    feasible, lengths = random.random(600) < 0.8, (6, 4, 25)
    whole = Accumulator(lengths, signs)
    whole.add(0, feasible, values)
    parts = Accumulator(lengths, signs)
    for start in random.permutation(np.arange(0, 600, 50)):
        part, here = Accumulator(lengths, signs), slice(start, start + 50)
        part.add(int(start), feasible[here], values[:, here])
        part.reasons["why"] += 1
        again = Accumulator(lengths, signs)
        again.restore(part.arrays())
        parts.merge(again)
    assert parts.reasons == {"why": 12}
    one, other = whole.arrays(), parts.arrays()
    for name in one.keys() - {"reasons"}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_a_front_beyond_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dse.grid.accumulator.LARGEST_FRONT", 10)
    equal, total = Accumulator((20,), (1.0,)), Accumulator((20,), (1.0,))
    equal.add(0, np.ones(20, bool), np.ones((1, 20)))
    with pytest.raises(InputError, match="more than 10 designs are equally good"):
        total.merge(equal)


def test_the_best_of_an_objective_are_those_that_can_be_had_the_first_of_equals_first() -> None:
    accumulator = Accumulator((20,), (-1.0,))  # more is better
    values = np.array([[5.0, 9.0, 7.0, 9.0, *np.arange(16.0) / 10]])
    feasible = np.ones(20, bool)
    feasible[1] = False
    accumulator.add(0, feasible, values)
    assert accumulator.top(0).tolist() == [3, 2, 0, *range(19, 19 - (TOP - 3), -1)]
    assert accumulator.arrays()["front"].tolist() == [3]


def test_fewer_designs_than_are_kept_are_all_there() -> None:
    accumulator = Accumulator((20,), (1.0,))
    accumulator.add(4, np.array([True, False, True]), np.array([[2.0, 0.0, 1.0]]))
    assert accumulator.top(0).tolist() == [6, 4]
