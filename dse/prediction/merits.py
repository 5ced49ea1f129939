"""Figures of merit of predictors: absolute percentage errors, inlier ratios, rank correlation, and folds."""

from collections.abc import Iterator
from typing import Any

import numpy as np

THRESHOLDS = (1, 5, 10, 15, 20, 30, 40, 50)
"""Errors [%] below which rows are inliers (O'Neal, Eq. 2:7)."""

FOLDS = 10


def percentage_errors(predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return APE_i = 100 |y_i - f(x_i)| / y_i [%]."""
    return 100.0 * np.abs(measured - predicted) / measured


def inlier_ratio(errors: np.ndarray, threshold: float) -> float:
    """Return the share of rows with an error of at most ``threshold`` [%] (Eq. 2:7), in percent."""
    return 100.0 * float(np.mean(errors <= threshold))


def merits(predicted: np.ndarray, measured: np.ndarray) -> dict[str, Any]:
    """Return the mean error [%] (Eq. 2:5), its median, the geometric bias, inlier ratios [%] and rank correlations."""
    from scipy.stats import kendalltau, spearmanr

    errors = percentage_errors(predicted, measured)
    ranked = len(set(predicted.tolist())) > 1 and len(set(measured.tolist())) > 1
    return {
        "error": float(errors.mean()),
        "median_error": float(np.median(errors)),
        "bias": float(np.exp(np.mean(np.log(predicted / measured)))),
        "inliers": {f"{t}": inlier_ratio(errors, t) for t in THRESHOLDS},
        "spearman": float(spearmanr(predicted, measured)[0]) if ranked else 0.0,
        "kendall": float(kendalltau(predicted, measured)[0]) if ranked else 0.0,
    }


def random_folds(count: int, folds: int = FOLDS, seed: int = 0) -> np.ndarray:
    """Return the number of each row's fold, drawn at random and evenly."""
    return np.random.default_rng(seed).permutation(np.arange(count) % folds)


def group_folds(groups: np.ndarray, folds: int = FOLDS, seed: int = 0) -> np.ndarray:
    """Return the number of each row's fold so that no group stands in two: whole networks, whole devices."""
    names, place = np.unique(groups.astype(str), return_inverse=True)
    return random_folds(len(names), min(folds, len(names)), seed)[place]


def size_folds(cost: np.ndarray, folds: int = 5) -> np.ndarray:
    """Return folds of neighbouring sizes: to predict one is to interpolate or to extrapolate."""
    rank = np.argsort(np.argsort(cost, kind="stable"), kind="stable")
    return rank * folds // len(cost)


def splits(fold: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (rows to fit, rows left out) of every fold."""
    for number in np.unique(fold):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
