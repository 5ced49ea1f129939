"""Loads of a mixture's experts that follow a power law, as the public tables of mixtures draw them.

The steps are those of ai-dynamo/aiconfigurator@095f58a5 (collector/helper.py): draw, scale to the pairs of tokens and
experts, round, bound by the tokens, and hand out what rounding and bound leave, to each rank in turn.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from dse.base.constants import constant

DRAWS = int(constant("routing_draws"))
"""Draws of loads that a power law's tiles are the mean of."""

LARGEST_SHARE = constant("routing_largest_share")
"""Largest load that is drawn, as a share of the tokens; all are scaled to the sum of the loads afterwards."""

FEW_LOADS = (constant("routing_few_least"), constant("routing_few_most"))
"""Bounds of the loads where there are fewer rows than experts."""


class Loads(NamedTuple):
    """Loads of the experts of the busiest rank, ``rows`` (draws, experts of a rank), whole, none above the tokens; and
    ``met`` (draws,): tokens of which any expert is on that rank."""

    rows: np.ndarray
    met: np.ndarray


@cache
def power_law_loads(tokens: int, experts: int, chosen: int, ranks: int, exponent: float) -> Loads:
    """Return the loads of the busiest of ``ranks`` whose ``experts`` have loads by a power law of ``exponent``."""
    pairs = tokens * chosen
    drawn = _drawn(tokens, experts, pairs, exponent)
    loads = np.round(drawn / drawn.sum(axis=1, keepdims=True) * pairs).astype(np.int64)
    over = np.maximum(loads - tokens, 0).sum(axis=1)
    loads = np.minimum(loads, tokens).reshape(DRAWS, ranks, experts // ranks)
    loads = _raised(loads, _shares(over, ranks), tokens)
    for _ in range(ranks):  # a rank that is full leaves its share to the next round
        missing = pairs - loads.sum(axis=(1, 2))
        if not missing.any():
            break
        loads = _raised(loads, _shares(np.maximum(missing, 0), ranks), tokens)
        loads = tokens - _raised(tokens - loads, _shares(np.maximum(-missing, 0), ranks), tokens)
    order = np.arange(DRAWS)
    busiest = loads.sum(axis=2).argmax(axis=1)
    mine = loads[order, busiest]
    met = np.array([_met(every, rank, tokens) for every, rank in zip(loads, busiest, strict=True)])
    return Loads(mine.astype(float), met)


def _drawn(tokens: int, experts: int, pairs: int, exponent: float) -> np.ndarray:
    """Loads (draws, experts) before they are whole, by the inverse of their distribution."""
    low, high = (1.0, max(LARGEST_SHARE * tokens, 1.0)) if pairs > experts else FEW_LOADS
    u = np.random.default_rng(0).random((DRAWS, experts))
    if abs(exponent - 1.0) < 1e-6:
        return low * (high / low) ** u
    e = 1.0 - exponent
    return ((high**e - low**e) * u + low**e) ** (1.0 / e)


def _shares(pairs: np.ndarray, ranks: int) -> np.ndarray:
    """Pairs (draws, ranks) of those that are handed out (draws,), one to each rank in turn."""
    return pairs[:, None] // ranks + (np.arange(ranks) < (pairs % ranks)[:, None])


def _raised(loads: np.ndarray, more: np.ndarray, most: int) -> np.ndarray:
    """Return ``loads`` (..., experts) after ``more`` (...) pairs, each to the smallest load, none beyond ``most``."""
    low, high = loads.min(axis=-1), np.full(more.shape, most)
    while (low < high).any():  # the level up to which the pairs suffice
        level = (low + high + 1) // 2
        enough = np.maximum(level[..., None] - loads, 0).sum(axis=-1) <= more
        low, high = np.where(enough, level, low), np.where(enough, high, level - 1)
    found = np.maximum(loads, low[..., None])
    left = more - (found - loads).sum(axis=-1)
    next_ = (found == low[..., None]) & (found < most)
    return found + (next_ & (np.cumsum(next_, axis=-1) <= left[..., None]))


def _met(loads: np.ndarray, rank: int, tokens: int) -> float:
    """Tokens with any expert on a rank, where experts in the order of their ``loads`` (ranks, experts) fill one column
    of choices of the tokens after the other."""
    ranked = loads.ravel()
    order = np.argsort(-ranked, kind="stable")
    ends = np.cumsum(ranked[order])
    mine = (order // loads.shape[1] == rank) & (ranked[order] > 0)
    first, last = (ends - ranked[order])[mine] % tokens, ends[mine] % tokens
    begun = np.bincount(first, minlength=tokens + 1) - np.bincount(last, minlength=tokens + 1)
    whole = (last <= first).sum()  # those that go on at the first token
    return float((np.cumsum(begun[:tokens]) + whole > 0).sum())
