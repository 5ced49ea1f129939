"""Non-linear predictors: a random forest and a small neural network, on logarithms of features and cycles.

Both are fitted by scikit-learn and kept as arrays, so that they run inside a jitted program.
"""

import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.extras import extra

TREES = tuple(2**i for i in range(1, 11))
"""Numbers of trees that are tried (O'Neal)."""

LEAST_LEAF = 2
HIDDEN = (16,)
TINY = 1e-3
"""Cycles added before a logarithm is taken: features can be 0."""

RANGE = 2.0
"""How far beyond the smallest and largest response of training a network may go: a factor."""


class Forest(eqx.Module):
    """A random forest as arrays of shape (trees, nodes): feature and threshold of a node, its children, its value.

    A leaf is its own child. ``depth`` steps end in a leaf of every tree.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    depth: int = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        """Return exp of the mean leaf of one row of features, shape (features,)."""
        logs = jnp.log(jnp.asarray(x) + TINY)
        trees = jnp.arange(self.feature.shape[0])

        node = jnp.zeros(len(trees), dtype=int)
        for _ in range(self.depth):  # no loop of JAX's, which a sweep's program would have to take apart
            goes_left = logs[self.feature[trees, node]] <= self.threshold[trees, node]
            node = jnp.where(goes_left, self.left[trees, node], self.right[trees, node])
        return jnp.exp(jnp.mean(self.value[trees, node]))


class Perceptron(eqx.Module):
    """A multilayer perceptron on standardised logarithms, limited to the range of its training times RANGE."""

    centre: Array
    spread: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    low: Array
    high: Array

    def __call__(self, x: Array) -> Array:
        """Return the prediction of one row of features, shape (features,)."""
        value = (jnp.log(jnp.asarray(x) + TINY) - self.centre) / self.spread
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            value = value @ weight + bias
            if number < len(self.weights) - 1:
                value = jnp.tanh(value)
        return jnp.exp(jnp.clip(value[0], self.low, self.high))


def grown(x: np.ndarray, y: np.ndarray, trees: int = TREES[-1]) -> Any:
    """Return scikit-learn's forest on logarithms."""
    with extra("predict", "a random forest"):
        from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(trees, min_samples_leaf=LEAST_LEAF, random_state=0, n_jobs=-1)
    return forest.fit(np.log(x + TINY), np.log(y))


def predictions_by_trees(forest: Any, x: np.ndarray) -> dict[int, np.ndarray]:
    """Return what the first 2, 4, 8 ... trees of a forest predict."""
    logs = np.log(x + TINY).astype(np.float32)
    each = np.stack([tree.predict(logs) for tree in forest.estimators_])
    means = np.cumsum(each, axis=0) / np.arange(1, len(each) + 1)[:, None]
    return {trees: np.exp(means[trees - 1]) for trees in TREES if trees <= len(each)}


def forest_record(forest: Any) -> Forest:
    """Return a fitted forest as arrays."""
    trees = [tree.tree_ for tree in forest.estimators_]
    nodes = max(tree.node_count for tree in trees)

    def padded(values: list[np.ndarray], fill: float = 0) -> np.ndarray:
        return np.stack([np.pad(v, (0, nodes - len(v)), constant_values=fill) for v in values])

    own = [np.arange(tree.node_count) for tree in trees]
    ends = [tree.children_left < 0 for tree in trees]
    feature = [np.where(end, 0, tree.feature) for tree, end in zip(trees, ends, strict=True)]
    left, right = (
        [np.where(e, o, getattr(t, side)) for t, o, e in zip(trees, own, ends, strict=True)]
        for side in ("children_left", "children_right")
    )
    whole = (jnp.asarray(padded(values).astype(int)) for values in (feature, left, right))
    threshold, value = (
        jnp.asarray(padded(v)) for v in ([t.threshold for t in trees], [t.value[:, 0, 0] for t in trees])
    )
    at, below, above = whole
    return Forest(at, threshold, below, above, value, max(tree.max_depth for tree in trees))


def fit_network(x: np.ndarray, y: np.ndarray) -> Perceptron:
    """Return a small network, fitted by L-BFGS from a fixed seed."""
    with extra("predict", "a neural network"):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

    logs, target = np.log(x + TINY), np.log(y)
    centre, spread = logs.mean(axis=0), logs.std(axis=0)
    spread[spread < 1e-9] = 1.0
    network = MLPRegressor(
        hidden_layer_sizes=HIDDEN, activation="tanh", solver="lbfgs", alpha=0.01, max_iter=100, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit((logs - centre) / spread, target)
    ends = target.min() - np.log(RANGE), target.max() + np.log(RANGE)
    arrays = [jnp.asarray(part) for part in (centre, spread)]
    weights, biases = (tuple(jnp.asarray(p) for p in parts) for parts in (network.coefs_, network.intercepts_))
    return Perceptron(arrays[0], arrays[1], weights, biases, jnp.asarray(ends[0]), jnp.asarray(ends[1]))
