"""How sure a fit is: bootstrap over benchmarks, and what the curvature of the misfit identifies."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from dse.calibration.optimiser import LinearProblem

PERCENTILES = (2.5, 97.5)


def benchmark_draws(groups: Sequence[str], count: int, seed: int = 0) -> np.ndarray:
    """Return weights (count, rows) of benchmarks drawn with replacement: how often each row's benchmark was drawn."""
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    drawn = np.random.default_rng(seed).integers(0, len(names), (count, len(names)))
    return np.stack([np.bincount(row, minlength=len(names)) for row in drawn]).astype(float)[:, place]


def mean_interval(errors: np.ndarray, groups: Sequence[str], count: int = 5000) -> tuple[float, float]:
    """Return the 95 % interval of a mean error over benchmarks drawn with replacement."""
    low, high = np.percentile(_means(errors, groups, count), PERCENTILES)
    return float(low), float(high)


def probability_lower(errors: np.ndarray, others: np.ndarray, groups: Sequence[str], count: int = 5000) -> float:
    """Return the share of such draws in which the mean of ``errors`` is below that of ``others``."""
    return float(np.mean(_means(errors - others, groups, count) < 0))


def _means(errors: np.ndarray, groups: Sequence[str], count: int) -> np.ndarray:
    weights = benchmark_draws(groups, count)
    return weights @ errors / weights.sum(axis=1)


class Identified(NamedTuple):
    """``share`` (coefficients,): part of each coefficient's answer that comes from the data, 0 (the prior) to 1.

    ``condition``: ratio of the largest to the smallest curvature of the misfit alone, infinite where data say nothing.
    """

    share: np.ndarray
    condition: float


def identified(problem: LinearProblem, at: Array, weights: Array, strength: float, bend: float | None) -> Identified:
    """Return what the Hessian of the misfit at a fit says: diagonal of (H + prior)^-1 H, the resolution matrix."""
    data = np.asarray(jax.hessian(lambda x: problem.misfit(x, weights, bend))(at))
    prior = strength * np.asarray(problem.prior.T @ problem.prior)
    share = np.diag(np.linalg.pinv(data + prior, rcond=1e-12, hermitian=True) @ data)
    curvature = np.linalg.eigvalsh(data)
    smallest = max(curvature[0], 0.0)
    condition = float(curvature[-1] / smallest) if smallest > 1e-12 * curvature[-1] else float("inf")
    return Identified(np.clip(share, 0.0, 1.0), condition)
