"""The model of paired errors, fitted to pairs of GPUs, and its coverage on pairs that the fit has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from dse.base.error_interval import DEVIATIONS

FLOOR, FLOOR_SPREAD = 0.04, 1.0
"""Prior of the floor: what readings of one product on two boards of one die differ by; its spread in logarithms."""

CENTRE, CENTRE_SPREAD = 0.1, 1.5
"""Prior of the middle of all terms, and its spread in logarithms."""

SPREAD = 0.7
"""Spread of the terms about their middle in logarithms: a term that no pair tells apart stands in the middle."""

FREEDOM = 2.0
"""Degrees of freedom of a pair: its rows go together, so that it tells little more than one error."""

SHARE = 0.8

DRAWS = 60
"""Resamplings of the pairs for the interval of each term."""


@dataclass(frozen=True)
class Pair:
    """The log errors of the rows of one table on two devices, and how far the devices lie apart in each term.

    ``known``: the standard deviation that is stated elsewhere, beside the terms.
    """

    table: str
    first: str
    second: str
    kind: str
    far: np.ndarray
    errors: np.ndarray
    known: float = 0.0

    @property
    def devices(self) -> frozenset[str]:
        """The two devices."""
        return frozenset((self.first, self.second))

    @property
    def spread(self) -> float:
        """The standard deviation of a normal distribution with as wide an interval of 80 %."""
        return float(np.quantile(np.abs(self.errors), SHARE)) / DEVIATIONS


class Fit(NamedTuple):
    """Standard deviation of each term for one unit of it, and the floor."""

    terms: np.ndarray
    floor: float

    def spread(self, pair: Pair) -> float:
        """Return the standard deviation of a pair's errors."""
        return float(np.sqrt(self.floor**2 + pair.known**2 + self.terms**2 @ pair.far**2))


def weights(pairs: Sequence[Pair]) -> np.ndarray:
    """Return what each counts: several tables of two devices tell less than as many of others."""
    return np.array([sum(p.devices == other.devices for other in pairs) ** -0.5 for p in pairs])


def fit(pairs: Sequence[Pair]) -> Fit:
    """Return the most probable terms and floor, given the spreads of the pairs and the priors above.

    Where pairs have something ``known``, two alike have nothing that differs: there is no floor.
    """
    far, seen, weight = np.array([p.far**2 for p in pairs]), np.array([p.spread**2 for p in pairs]), weights(pairs)
    count, known = far.shape[1], np.array([p.known**2 for p in pairs])
    floored = 0.0 if known.any() else 1.0

    def loss(logs: np.ndarray) -> float:
        terms, floor, centre = logs[:count], logs[count], logs[count + 1]
        variance = known + floored * np.exp(2 * floor) + far @ np.exp(2 * terms)
        fits = FREEDOM / 2 * weight @ (np.log(variance) + seen / variance)
        prior = np.sum(((terms - centre) / SPREAD) ** 2) + ((floor - np.log(FLOOR)) / FLOOR_SPREAD) ** 2
        return float(fits + (prior + ((centre - np.log(CENTRE)) / CENTRE_SPREAD) ** 2) / 2)

    start = np.log([*[CENTRE] * count, FLOOR, CENTRE])
    logs = minimize(loss, start, method="L-BFGS-B").x
    return Fit(np.exp(logs[:count]), floored * float(np.exp(logs[count])))


class LeftOut(NamedTuple):
    """A pair under a fit that has not seen it: its spread by the fit, and what all pairs but it widen that by."""

    pair: Pair
    spread: float
    wider: float

    @property
    def half(self) -> float:
        """Half the width of the interval of 80 %, of the logarithm."""
        return DEVIATIONS * self.spread * self.wider

    @property
    def coverage(self) -> float:
        """Share of the rows within the interval."""
        return float((np.abs(self.pair.errors) <= self.half).mean())


def left_out_in_turn(pairs: Sequence[Pair], unseen: Callable[[Pair, Pair], bool]) -> list[LeftOut]:
    """Return each pair under a fit to those that are ``unseen`` by it; the widening is learnt from the others alone."""
    spreads = [(p, fit(rest).spread(p)) for p in pairs if len(rest := [q for q in pairs if unseen(p, q)]) >= 3]
    return [
        LeftOut(p, spread, widening([(q, s) for q, s in spreads if q.devices != p.devices])) for p, spread in spreads
    ]


def widening(spreads: Sequence[tuple[Pair, float]]) -> float:
    """Return the factor that makes intervals of these spreads hold SHARE of the rows, each pair counting alike."""
    ratios = np.concatenate([np.abs(p.errors) / spread for p, spread in spreads])
    each = weights([p for p, _ in spreads])
    weight = np.concatenate(
        [np.full(len(p.errors), w / len(p.errors)) for (p, _), w in zip(spreads, each, strict=True)]
    )
    order = np.argsort(ratios)
    return float(np.interp(SHARE, np.cumsum(weight[order]) / weight.sum(), ratios[order])) / DEVIATIONS


def other_pair(one: Pair, other: Pair) -> bool:
    """Whether two pairs are of different devices."""
    return one.devices != other.devices


def other_devices(one: Pair, other: Pair) -> bool:
    """Whether two pairs share no device."""
    return not one.devices & other.devices


def intervals(pairs: Sequence[Pair]) -> np.ndarray:
    """Return the ends of the middle 80 % of each term and of the floor over resampled pairs, (2, terms + 1)."""
    random, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        drawn = fit([pairs[i] for i in random.integers(0, len(pairs), len(pairs))])
        found.append([*drawn.terms, drawn.floor])
    return np.quantile(found, [(1 - SHARE) / 2, (1 + SHARE) / 2], axis=0)
