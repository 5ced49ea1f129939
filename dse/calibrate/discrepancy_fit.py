"""Fit of a calibration's discrepancy: what the equations leave of measured products, by a few points of their shapes.

Points are picked one after the other where they explain most (greedily, as orthogonal matching pursuit does), weights
are a robust ridge regression on all of them, and how many there are is decided by shape families that are left out in
turn: none, where nothing is gained.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from dse.calibrate.stages import StagedFit, errors_after, with_fitted_overhead
from dse.calibrate.timed import SEEN, TimedRows, best
from dse.calibrate.timing_fit import model_of
from dse.timing.discrepancy import Points, features, likeness

COUNTS = (16, 32, 64, 96, 128)
"""Points that are tried. More help a little still (an A100's products: 6.1 % with 128, 5.8 with 192), but a file is to
be read."""

RIDGE = 0.3
"""Variance of a row's noise over the discrepancy's; it and ROBUST were chosen on fitted families of A100 and H100."""

ROBUST = 0.05
"""Log error beyond which a row counts by its distance, not by its square."""

WIDEST = 0.6
"""Log error beyond which a row tells no more."""

TOGETHER = 8
"""Points after which the weights of all are solved for anew; until as many are picked, after each."""

FOLDS = 5
FEWEST_FAMILIES = 10
FEWEST_ROWS = 100
"""With fewer of either, families left out in turn say too little: the equations stand alone."""

GAIN = 0.02
"""Share of the error that it must take off families left out in turn."""

ROUNDS = 3
"""Times that weights are solved for, each with the model's own answer, which overheads and power limit hold back."""

JITTER = 1e-6


@dataclass(frozen=True)
class Measured:
    """Rows as a discrepancy sees them: ``shapes`` (rows, 3), ``target`` (rows,), the log error to explain, ``share``
    (rows,) of the time that is the kernel's, and ``fold`` (rows,), which part of the shape families they are in."""

    shapes: np.ndarray
    target: np.ndarray
    share: np.ndarray
    fold: np.ndarray

    def rows(self, mask: np.ndarray) -> "Measured":
        """Return the rows of a mask."""
        return Measured(self.shapes[mask], self.target[mask], self.share[mask], self.fold[mask])


def with_discrepancy(fit: StagedFit, rows: TimedRows, out: np.ndarray, fit_overhead: bool = False) -> StagedFit:
    """Return a fit with what its equations leave of the rows that it may see (not ``out``), as a last stage; as it was,
    where families left out in turn gain nothing, or where the rows are not of one GPU's plain products.
    """
    timed = with_fitted_overhead(rows, fit.values, fit_overhead)
    shapes = _shapes(rows)
    mine = ~out & (shapes[:, 0] > 0)
    sm_counts, families = np.unique(rows.gpus.sm_count), rows.table["family"].astype(str)
    if len(sm_counts) > 1 or mine.sum() < FEWEST_ROWS or families[mine].nunique() < FEWEST_FAMILIES:
        return fit
    measured = rows.table["latency_us"].to_numpy()
    kernel = np.maximum(fit.predicted_us - timed.table["overhead_us"].to_numpy(), SEEN * fit.predicted_us)
    folds = np.array([crc32(b"fold " + name.encode()) % FOLDS for name in families])
    seen = Measured(shapes, np.log(measured / fit.predicted_us), kernel / fit.predicted_us, folds).rows(mine)
    sm_count = float(sm_counts[0])
    count = best_count(seen, sm_count)
    if not count:
        return fit
    points = picked(seen, sm_count, (count,))[count]
    for _ in range(ROUNDS):
        predicted, _ = best(replace(model_of(fit.values), discrepancy=points.record()), timed)
        still = np.log(measured / predicted)[mine]
        points = weighed(replace(seen, target=seen.share * points.at(seen.shapes) + still), points)
    predicted, _ = best(replace(model_of(fit.values), discrepancy=points.record()), timed)
    stage = errors_after("discrepancy", rows, out, predicted, (), int(mine.sum()))
    return replace(fit, stages=(*fit.stages, stage), predicted_us=predicted, discrepancy=points)


def _shapes(rows: TimedRows) -> np.ndarray:
    """The product (rows, 3) that each row's kernels are of, zeros of anything else."""
    first = rows.kernels
    return np.stack([np.asarray(x)[rows.starts] for x in (first.m, first.n, first.k)], axis=-1).astype(float)


def best_count(rows: Measured, sm_count: float) -> int:
    """Return how many points predict families left out in turn best; 0 where they are predicted as well without."""
    error = {count: np.zeros(len(rows.target)) for count in (0, *COUNTS)}
    for fold in range(FOLDS):
        out = rows.fold == fold
        left = rows.rows(out)
        error[0][out] = left.target
        for count, points in picked(rows.rows(~out), sm_count, COUNTS).items():
            error[count][out] = left.target - left.share * points.at(left.shapes)
    mean = {count: float(np.abs(of).mean()) for count, of in error.items()}
    found = min(mean, key=lambda count: mean[count])
    return found if mean[found] < (1 - GAIN) * mean[0] else 0


def picked(rows: Measured, sm_count: float, counts: Sequence[int]) -> dict[int, Points]:
    """Return the discrepancies of so many points each, picked among the rows' shapes; all where they are fewer."""
    target = np.clip(rows.target, -WIDEST, WIDEST)
    shapes = np.unique(rows.shapes, axis=0)
    centers = features(shapes, sm_count)
    near = rows.share[:, None] * likeness(features(rows.shapes, sm_count), centers)
    left, trust, places, weights = target.copy(), np.ones(len(target)), [], np.zeros(0)
    found, most = {}, min(max(counts), len(shapes))
    for number in range(1, most + 1):
        gain = (near.T @ (trust * left)) ** 2 / ((near**2).T @ trust + RIDGE)
        gain[places] = -1.0
        places.append(int(gain.argmax()))
        if number < 2 * TOGETHER or number % TOGETHER == 0 or number in (*counts, most):
            part, like = near[:, places], likeness(centers[places], centers[places])
            weights, left, trust = _robust(part, like, target, left)
        else:
            column = near[:, places[-1]]
            left = left - column * (column @ (trust * left)) / (column**2 @ trust + RIDGE)
        if number in counts:
            found[number] = Points(shapes[places], weights, sm_count)
    return {count: found.get(count) or Points(shapes[places], weights, sm_count) for count in counts}


def weighed(rows: Measured, points: Points) -> Points:
    """Return the discrepancy of the same points, with weights for these rows."""
    centers = features(points.shapes, points.sm_count)
    near = rows.share[:, None] * likeness(features(rows.shapes, points.sm_count), centers)
    target = np.clip(rows.target, -WIDEST, WIDEST)
    start = target - near @ points.weights
    weights, _, _ = _robust(near, likeness(centers, centers), target, start)
    return points._replace(weights=weights)


def _robust(near: np.ndarray, like: np.ndarray, target: np.ndarray, left: np.ndarray
            ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return weights of the least ROBUST errors and RIDGE prior, what they leave of ``target``, and each row's trust.

    ``left``: what the weights of before leave, by which rows are trusted at first.
    """
    prior = RIDGE * (like + JITTER * np.eye(len(like)))
    weights, trust = np.zeros(len(like)), np.ones(len(target))
    for _ in range(3):
        trust = ROBUST / np.sqrt(left**2 + ROBUST**2)
        weights = np.linalg.solve(near.T @ (trust[:, None] * near) + prior, near.T @ (trust * target))
        left = target - near @ weights
    return weights, left, trust
