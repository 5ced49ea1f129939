"""Scores of predicted ratios between two GPUs, and of the order of several."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

LIKE = (0.9, 1.1)
"""A measured ratio within these is too near to 1 to have a side."""

TIED = np.log(1.05)
"""Members of a set this near are tied."""


class Score(NamedTuple):
    """Errors of one predictor on a pair: mean |log(predicted ratio / measured ratio)|, and the share of rows on the
    right side of 1, NaN where no row has a side."""

    log_error: float
    right_side: float


def score(predicted: np.ndarray, measured: np.ndarray) -> Score:
    """Return the score of predicted ratios (rows,)."""
    sided = (measured < LIKE[0]) | (measured > LIKE[1])
    right = (predicted > 1) == (measured > 1)
    return Score(
        float(np.abs(np.log(predicted / measured)).mean()),
        float(right[sided].mean()) if sided.any() else float("nan"),
    )


def tau_b(predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of the members' order on each shape (shapes,), those within 5 % tied; NaN where all are.

    ``predicted`` and ``measured``: times (shapes, members). Kendall, Rank Correlation Methods, 1970, chapter 3.
    """
    agree, ours, theirs = (np.zeros(len(measured)) for _ in range(3))
    for i, j in combinations(range(measured.shape[1]), 2):
        signs = [np.log(times[:, i] / times[:, j]) for times in (predicted, measured)]
        mine, his = (np.where(np.abs(s) < TIED, 0.0, np.sign(s)) for s in signs)
        agree += mine * his
        ours += mine**2
        theirs += his**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(theirs > 0, agree / np.sqrt(np.maximum(ours, 1e-9) * theirs), np.nan)


def by_kind(lines: pd.DataFrame) -> list[str]:
    """Return a table of means over pairs, a line a kind: of ``scores.csv``, for pages that tell it."""
    text = ["| two GPUs, neither fitted | pairs | **ours** | data sheet | three fitted numbers |", "|---" * 5 + "|"]
    for kind, part in [*lines.groupby("kind", sort=False), ("all", lines)]:
        mean = part[["ours", "sheet", "pooled"]].mean()
        name = "two data types of one GPU, one fitted" if kind == "data types" else kind
        text.append(f"| {name} | {len(part)} | **{mean['ours']:.3f}** | {mean['sheet']:.3f} | {mean['pooled']:.3f} |")
    return text
