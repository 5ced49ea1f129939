"""Rows that the experts of a mixture get of a batch of tokens: how many have any, and the tiles that they fill."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dse.base.errors import InputError
from dse.workload.operators.power_law_loads import Loads, power_law_loads

BALANCED, UNIFORM, POWER_LAW = "balanced", "uniform", "power_law_"
"""Ways of routing: every expert gets as many tokens, each token chooses among all alike, or loads follow a power law
whose exponent ends the name."""


@dataclass(frozen=True)
class ExpertRows:
    """Rows of the experts on one of ``ranks`` GPUs that share out ``experts``, of which each token goes to ``chosen``.

    ``tokens`` of all ranks. Of a power law the rank with most rows counts, since the others wait for it. The slowest
    rank has a row at least, with any routing. ``strays``: its first expert computes ``remote`` pairs too; ``tuned``:
    its library's tiles were tuned for its shape (:mod:`dse.workload.operators.expert_products`).
    """

    tokens: float
    experts: int
    chosen: int
    ranks: int = 1
    routing: str = UNIFORM
    strays: bool = False
    tuned: bool = False

    @property
    def local(self) -> float:
        """Experts of a rank."""
        return self.experts / self.ranks

    @property
    def rows(self) -> float:
        """Rows that the rank computes."""
        if self._exponent is None:
            return max(1.0, self.tokens * self.chosen / self.ranks)
        return float(self._loads.rows.sum(axis=1).mean())

    @property
    def distinct(self) -> float:
        """Experts of the rank with at least one row: E_l (1 - (1 - k/E)^t) where tokens choose alike."""
        return self.tiles(np.inf)

    @property
    def mean(self) -> float:
        """Rows of an expert that has any."""
        return self.rows / self.distinct

    def computed_by(self, strays: bool, tuned: bool) -> "ExpertRows":
        """Return the same rows as a library computes them."""
        return replace(self, strays=strays and self.ranks > 1, tuned=tuned)

    def tiles(self, rows: float) -> float:
        """Return the expected number of tiles of ``rows`` that the experts' rows fill: the sum of E[ceil(m / rows)]."""
        strays = np.ceil(self.remote / rows) if self.strays and np.isfinite(rows) else 0.0
        return self._own_tiles(rows) + float(strays)

    def _own_tiles(self, rows: float) -> float:
        if self._exponent is not None:
            loads = self._loads.rows
            tiles = np.ceil(loads / rows) if np.isfinite(rows) else loads > 0
            return float(tiles.sum(axis=1).mean())
        if self.routing == BALANCED:
            busy = min(self.local, self.rows)
            return busy * (np.ceil(self.rows / busy / rows - 1e-9) if np.isfinite(rows) else 1.0)
        return max(1.0, self.local * _ceilings(self.tokens, self.chosen / self.experts, rows))

    @property
    def met(self) -> float:
        """Tokens of which any expert is on the rank."""
        if self._exponent is not None:
            return float(self._loads.met.mean())
        if self.routing == BALANCED:  # choices of a token lie a stride apart (the collector's)
            return max(1.0, self.tokens * min(1.0, self.local / np.ceil(self.experts / self.chosen)))
        others = 1.0 - self.local / (self.experts - np.arange(self.chosen))
        return max(1.0, self.tokens * (1.0 - float(np.maximum(others, 0.0).prod())))

    @property
    def remote(self) -> float:
        """Pairs of these tokens and experts of other ranks."""
        return max(0.0, self.met * self.chosen - self.rows)

    @property
    def _exponent(self) -> float | None:
        return float(self.routing.removeprefix(POWER_LAW)) if self.routing.startswith(POWER_LAW) else None

    @property
    def _loads(self) -> Loads:
        assert self._exponent is not None
        return power_law_loads(max(1, round(self.tokens)), self.experts, self.chosen, self.ranks, self._exponent)


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
