"""Weights of a discrepancy by which no time of a product falls as it gains rows: least squares under that condition.

A quadratic programme: |L' (w - best)| least, so that on every ladder no time is less than one before by more than
ALLOWED. Its conditions are linear in the weights, and far more than ever bind: those that are broken worst are added
until none is (cutting planes), and with these the least distance is one of non-negative least squares (Lawson and
Hanson, Solving Least Squares Problems, 1974, chapter 23).
"""

import numpy as np
from scipy.optimize import nnls

from dse.calibration.timing.product_ladders import Ladders
from dse.timing.discrepancy import Points, likeness

ALLOWED = 0.006
"""Fall [log] that ladders may show, so that between them none is of a hundredth."""

CLOSE = 1e-4
"""By how much a condition may be broken [log]."""

AT_ONCE, MOST_HELD = 150, 250
"""Conditions that are added at once, and of how many those that pull at nothing are dropped."""

CUTS = 60
"""Times that conditions are added at most."""

BLOCK = 1000
"""Products whose covariances are computed at once."""


class NeverFalling:
    """The condition on the weights of some points; remembers what bound it last.

    ``held``: (before, after) products of the ladders between which a fall was stopped, ``pull`` of each on the weights.
    """

    def __init__(self, ladders: Ladders, points: Points) -> None:
        centers = points.features(points.sizes)
        parts = np.array_split(points.features(ladders.sizes), max(len(ladders.sizes) // BLOCK, 1))
        self._near = np.concatenate([likeness(part, centers) for part in parts])
        self._ladders = ladders
        self.held: list[tuple[int, int]] = []
        self.pull = np.zeros(0)

    def solve(self, matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Return the weights w that make w' matrix w / 2 - vector' w least where no time falls."""
        weights = best = np.linalg.solve(matrix, vector)
        whiten = np.linalg.inv(np.linalg.cholesky(matrix)).T
        for _ in range(CUTS):
            weights = self._nearest(best, whiten) if self.held else best
            known = set(self.held)
            broken = self._ladders.falls(self._near @ weights, ALLOWED + CLOSE)
            new = [pair for pair in broken if pair not in known][:AT_ONCE]
            if not new:
                break
            self._forget(MOST_HELD)
            self.held += new
        self.held = self.held[: len(self.pull)]
        self._forget(0)
        return weights

    def _nearest(self, best: np.ndarray, whiten: np.ndarray) -> np.ndarray:
        """The weights nearest to ``best`` under the conditions held: their least distance from it."""
        before, after = np.array(self.held).T
        rises = self._near[after] - self._near[before]
        missing = self._ladders.logs[before] - self._ladders.logs[after] - ALLOWED - rises @ best
        table = np.vstack([(rises @ whiten).T, missing])
        wanted = np.zeros(len(table))
        wanted[-1] = 1.0
        self.pull, _ = nnls(table, wanted, maxiter=50 * len(missing))
        rest = table @ self.pull - wanted
        return best - whiten @ (rest[:-1] / rest[-1])

    def _forget(self, most: int) -> None:
        """Drop conditions that pull at nothing, where more than ``most`` are held."""
        if len(self.held) > most:
            self.held = [pair for pair, pull in zip(self.held, self.pull, strict=True) if pull > 0]
            self.pull = self.pull[self.pull > 0]

    def wanted(self, points: Points, count: int) -> np.ndarray:
        """Return sizes (at most ``count``, PROBLEM) that no point has, of products between which falls were stopped,
        those first that pull most: weights of theirs stop the falls there, and change little elsewhere."""
        places = [place for i in np.argsort(-self.pull, kind="stable") for place in self.held[i]]
        have = set(map(tuple, points.sizes.tolist()))
        sizes = dict.fromkeys(map(tuple, self._ladders.sizes[places].tolist()))
        return np.array([size for size in sizes if size not in have][:count]).reshape(-1, points.sizes.shape[1])
