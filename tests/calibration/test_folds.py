"""What is left out: nested folds, and the strength of the prior that they choose."""

import numpy as np

from dse.calibration.folds import Folds


def test_every_fit_of_the_nested_folds_is_there():
    folds = Folds.of(["a", "a", "b", "c"])
    pair, single = frozenset([0, 1]), frozenset([2])
    for out in (frozenset[int](), pair, single, frozenset([0]), pair | single, frozenset([0, 2])):
        np.testing.assert_array_equal(folds.weights[folds.place[out]], [float(i not in out) for i in range(4)])
    assert frozenset(range(4)) not in folds.place


def test_the_strength_is_chosen_by_inner_error_alone():
    folds = Folds.of(["a", "b", "c", "d"])
    errors = np.ones((len(folds.weights), 2, 4))
    errors[folds.place[frozenset([0, 1])], 1, 1] = 0.0  # inner fit without a and b predicts b best at the second
    errors[folds.place[frozenset([0])], 0, 0] = 0.0  # what a itself would like must not count
    assert folds.strength(errors, frozenset([0])) == 1
