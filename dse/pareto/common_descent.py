"""Directions that lower several objectives at once, within bounds, for arrays of points."""

import numpy as np

ROUNDS = 48
"""Steps to the shortest vector of the hull: its angle is then within a few degrees."""

FLAT = 1e-9
"""A row shorter than this share of the longest that is counted has no direction."""


def common_descent(rows: np.ndarray, counted: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return for each point a direction along which none of its rows grows to first order, or zero where none is.

    The shortest vector in the hull of the gradients, turned round (multiple-gradient descent: Fliege and Svaiter 2000,
    Désidéri 2012), found by Frank and Wolfe's steps. ``rows``: (points, rows, axes); ``counted`` (points, rows): rows
    that matter; ``places`` (points, axes) in the unit box, out of which no direction leads.
    """
    length = np.linalg.norm(rows, axis=2)
    longest = np.where(counted, length, 0.0).max(axis=1, keepdims=True)
    counted = counted & (length > FLAT * longest) & (length > 0)
    weights = counted / np.maximum(counted.sum(axis=1, keepdims=True), 1)
    for _ in range(ROUNDS):
        inside = projected(_mixed(weights, rows), places)
        along = np.where(counted, np.einsum("pra,pa->pr", rows, inside), np.inf)
        best = along.argmin(axis=1)
        target = projected(rows[np.arange(len(rows)), best], places)
        change = inside - target
        share = np.sum(inside * change, axis=1) / np.maximum(np.sum(change**2, axis=1), 1e-30)
        share = np.clip(share, 0.0, 1.0)[:, None]
        weights = weights * (1 - share)
        weights[np.arange(len(rows)), best] += share[:, 0]
    direction = -projected(_mixed(weights, rows), places)
    falls = np.where(counted, np.einsum("pra,pa->pr", rows, direction), -np.inf).max(axis=1) < 0
    return np.where(np.asarray(falls & np.any(counted, axis=1))[:, None], direction, 0.0)


def _mixed(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.einsum("pr,pra->pa", weights, rows)


def projected(gradient: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return gradients without the parts whose descent would leave the unit box at ``places``."""
    out = ((places <= 0) & (gradient > 0)) | ((places >= 1) & (gradient < 0))
    return np.where(out, 0.0, gradient)
