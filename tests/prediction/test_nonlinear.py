"""The forest's record against the library that grew it."""

import jax.numpy as jnp
import numpy as np
import pytest

from dse.prediction.nonlinear import RANGE, TINY, Forest, fit_network, forest_record, grown, predictions_by_trees
from dse.prediction.predictors import FittedPredictor
from tests.prediction.laws import TRUTH, X


def test_the_forest_record_is_scikit_learns():
    forest = grown(X, TRUTH, 16)
    record = FittedPredictor(forest_record(forest), False).many(X)
    assert np.allclose(record, np.exp(forest.predict(np.log(X + TINY))), rtol=1e-4)
    assert np.allclose(predictions_by_trees(forest, X)[16], record, rtol=1e-4)


def test_a_tree_by_hand():
    """One split at x0 = 1: below it exp(2), from there on exp(4); a leaf is its own child."""
    split = np.log(1.0 + TINY)
    tree = Forest(
        *(jnp.asarray([row]) for row in ([0, 0, 0], [split, 0.0, 0.0], [1, 1, 2], [2, 1, 2], [0.0, 2.0, 4.0])), depth=1
    )
    assert float(tree(np.array([0.5, 9.0]))) == pytest.approx(np.exp(2.0))
    assert float(tree(np.array([1.5, 9.0]))) == pytest.approx(np.exp(4.0))


def test_a_network_goes_a_factor_beyond_what_it_was_trained_on():
    network = fit_network(X, X[:, 0])
    assert float(network(np.full(4, 1e30))) <= RANGE * X[:, 0].max() * 1.0001
    assert float(network(np.zeros(4))) >= X[:, 0].min() / RANGE / 1.0001


def test_a_feature_that_never_varied_does_no_harm():
    rows = np.column_stack([X[:, 0], np.full(len(X), 7.0)])
    assert np.isfinite(float(fit_network(rows, X[:, 0])(rows[0])))
