"""Rows that the experts of a mixture get of a batch of tokens: how many have any, and the tiles that they fill."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from dse.base.constants import constant
from dse.base.errors import InputError

BALANCED, UNIFORM, POWER_LAW = "balanced", "uniform", "power_law_"
"""Ways of routing: every expert gets as many tokens, each token chooses among all alike, or loads follow a power law
whose exponent ends the name."""

DRAWS = int(constant("routing_draws"))
"""Draws of loads that a power law's tiles are the mean of."""

LARGEST_SHARE = constant("routing_largest_share")
"""Largest load that is drawn, as a share of the tokens; all are scaled to the sum of the loads afterwards."""

FEW_LOADS = (constant("routing_few_least"), constant("routing_few_most"))
"""Bounds of the loads where there are fewer rows than experts."""


@dataclass(frozen=True)
class ExpertRows:
    """Rows of the experts on one of ``ranks`` GPUs that share out ``experts``, of which each token goes to ``chosen``.

    ``tokens`` of all ranks. Of a power law the rank with most rows counts, since the others wait for it. The slowest
    rank has a row at least, with any routing.
    """

    tokens: float
    experts: int
    chosen: int
    ranks: int = 1
    routing: str = UNIFORM

    @property
    def local(self) -> float:
        """Experts of a rank."""
        return self.experts / self.ranks

    @property
    def rows(self) -> float:
        """Rows that the rank computes."""
        if self._exponent is None:
            return max(1.0, self.tokens * self.chosen / self.ranks)
        return float(self._loads.sum(axis=1).mean())

    @property
    def distinct(self) -> float:
        """Experts of the rank with at least one row: E_l (1 - (1 - k/E)^t) where tokens choose alike."""
        return self.tiles(np.inf)

    @property
    def mean(self) -> float:
        """Rows of an expert that has any."""
        return self.rows / self.distinct

    def tiles(self, rows: float) -> float:
        """Return the expected number of tiles of ``rows`` that the experts' rows fill: the sum of E[ceil(m / rows)]."""
        if self._exponent is not None:
            tiles = np.ceil(self._loads / rows) if np.isfinite(rows) else self._loads > 0
            return float(tiles.sum(axis=1).mean())
        if self.routing == BALANCED:
            busy = min(self.local, self.rows)
            return busy * (np.ceil(self.rows / busy / rows - 1e-9) if np.isfinite(rows) else 1.0)
        return max(1.0, self.local * _ceilings(self.tokens, self.chosen / self.experts, rows))

    @property
    def _exponent(self) -> float | None:
        return float(self.routing.removeprefix(POWER_LAW)) if self.routing.startswith(POWER_LAW) else None

    @property
    def _loads(self) -> np.ndarray:
        assert self._exponent is not None
        return _power_law(self.tokens, self.experts, self.chosen, self.ranks, self._exponent)


def checked_routing(where: str, routing: str) -> str:
    """Return a way of routing that is known; raises InputError."""
    exponent = routing.removeprefix(POWER_LAW)
    known = routing in (BALANCED, UNIFORM) or (routing != exponent and exponent.replace(".", "", 1).isdecimal())
    if not known:
        raise InputError(
            f"{where}: routing={routing} is not accepted; give {BALANCED}, {UNIFORM} or {POWER_LAW}EXPONENT, as "
            f"{POWER_LAW}1.2"
        )
    return routing


@cache
def _ceilings(tokens: float, share: float, rows: float) -> float:
    """E[ceil(m / rows)] of m of ``tokens`` that choose an expert with probability ``share``: sum over j of P(m > j
    rows)."""
    if not np.isfinite(rows):
        return 1.0 - (1.0 - share) ** tokens
    from scipy.stats import binom  # half a second that dense networks do without

    steps = np.arange(int(np.ceil(tokens / rows))) * rows
    return float(binom.sf(steps, int(tokens), share).sum())


@cache
def _power_law(tokens: float, experts: int, chosen: int, ranks: int, exponent: float) -> np.ndarray:
    """Loads of the experts of the busiest rank (draws, experts of a rank), whole, none above the tokens."""
    random = np.random.default_rng(0)
    pairs = tokens * chosen
    low, high = (1.0, LARGEST_SHARE * tokens) if pairs > experts else FEW_LOADS
    u = random.random((DRAWS, experts))
    if abs(exponent - 1.0) < 1e-6:
        drawn = low * (high / low) ** u
    else:
        e = 1.0 - exponent
        drawn = ((high**e - low**e) * u + low**e) ** (1.0 / e)
    loads = np.minimum(np.round(drawn / drawn.sum(axis=1, keepdims=True) * pairs), tokens)
    for load in loads:  # rounding and the cap move the sum: the busiest experts below the cap take what is missing
        missing = pairs - load.sum()
        for place in np.argsort(-load, kind="stable"):
            if missing == 0:
                break
            moved = np.clip(missing, -load[place], tokens - load[place])
            load[place] += moved
            missing -= moved
    ranked = loads.reshape(DRAWS, ranks, experts // ranks)
    busiest = ranked.sum(axis=2).argmax(axis=1)
    return ranked[np.arange(DRAWS), busiest]
