"""Fronts of two programs, which may round a result apart: the same designs, but for ties."""

import numpy as np

TIE = 1e-6
"""Share by which two programs' objectives may differ where both choose the same candidate: a few roundings of 6e-8."""


def only_ties(costs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each design of a front (designs, objectives), to be minimised, is equalled by one of another front, but
    for a tie."""
    return np.array([(others <= row + TIE * np.abs(row)).all(axis=1).any() for row in costs])
