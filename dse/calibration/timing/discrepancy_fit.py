"""Fit of a calibration's discrepancy: what the equations leave of measured kernels, by a few points of their sizes.

Points are picked one after the other where they explain most (greedily, as orthogonal matching pursuit does), weights
are a robust ridge regression on all of them, and how many there are is decided by shape families that are left out in
turn: none, where nothing is gained. Of products in 16 bits none may take less time than one of fewer rows
(:mod:`dse.calibration.timing.never_falling`): some more points stand where falls were stopped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from dse.calibration.timing.never_falling import NeverFalling
from dse.calibration.timing.product_ladders import Ladders, ladders_of
from dse.calibration.timing.stages import DISCREPANCY, StagedFit, errors_after, with_fitted_overhead
from dse.measured.timed_rows import SEEN, TimedRows, best
from dse.timing.discrepancy import PRODUCT, SIZES, Points, features, likeness

COUNTS = (16, 32, 64, 128, 256)
"""Points that are tried. All rows as points take another 0.1 to 0.3 off families left out in turn, but a file is to be
read."""

RIDGES = (0.12, 0.5)
"""Variances of a row's noise over the discrepancy's that are tried; chosen, as ROBUST was, with the weights of sizes
(:mod:`dse.timing.discrepancy`)."""

ROBUST = 0.03
"""Log error beyond which a row counts by its distance, not by its square."""

WIDEST = 0.6
"""Log error beyond which a row tells no more."""

TOGETHER = 8
"""Points after which the weights of all are solved for anew, or an eighth of all where that is more; until twice as
many are picked, after each."""

FOLDS = 5
FEWEST_FAMILIES = 10
FEWEST_ROWS = 200
"""With fewer of either, families left out in turn say too little: the equations stand alone."""

GAIN = 0.02
"""Share of the error that it must take off families left out in turn."""

ROUNDS = 3
"""Times that weights are solved for, each with the model's own answer, which overheads and power limit hold back."""

JITTER = 1e-6

RISING = ("matrix",)
"""Kinds whose times may not fall as products gain rows."""

FEWEST_OF_ROWS, MOST_OF_ROWS = 128, 160
"""Points among the sizes of rows under that condition, however many folds choose without it: it needs room."""

OF_LADDERS, TIMES = 96, 3
"""Points that are added where falls are stopped, and in how many parts."""

Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Measured:
    """Rows of one kind of implementation as a discrepancy sees them, on GPUs of ``sm_count`` where waves count.

    ``sizes`` (rows, PROBLEM); ``target`` (rows,), the log error to explain; ``share`` (rows,) of the time that is the
    kernel's; ``fold`` (rows,), which part of the shape families a row is in.
    """

    kind: str
    sm_count: float
    sizes: np.ndarray
    target: np.ndarray
    share: np.ndarray
    fold: np.ndarray

    def rows(self, mask: np.ndarray) -> "Measured":
        """Return the rows of a mask."""
        return replace(
            self, sizes=self.sizes[mask], target=self.target[mask], share=self.share[mask], fold=self.fold[mask]
        )

    def near(self, sizes: np.ndarray) -> np.ndarray:
        """Return how far a weight of each of some points (points, PROBLEM) shows in each row's time (rows, points)."""
        ours, theirs = (features(x, self.kind, self.sm_count) for x in (self.sizes, sizes))
        return self.share[:, None] * likeness(ours, theirs)

    def points(self, sizes: np.ndarray, weights: np.ndarray) -> Points:
        """Return the discrepancy of these points."""
        return Points(self.kind, sizes, weights, self.sm_count)


def with_discrepancy(
    fit: StagedFit, rows: TimedRows, out: np.ndarray, kind: str, fit_overhead: bool = False, fewest: int = FEWEST_ROWS
) -> StagedFit:
    """Return a fit with what its equations leave of the rows that it may see (not ``out``), as a last stage.

    As it was, where families left out in turn gain nothing, or are too few; where a ``kind`` of implementation has no
    discrepancy; and of products on several GPUs, whose waves differ. ``fewest`` rows that it needs.
    """
    sizes, sm_counts = _sizes(rows), np.unique(rows.gpus.sm_count)
    seen = ~out & (sizes[:, 0] > 0)
    if kind not in SIZES or too_few(rows, out, fewest) or (SIZES[kind] is PRODUCT and len(sm_counts) > 1):
        return fit
    timed = with_fitted_overhead(rows, fit.values, fit_overhead)
    measured = rows.table["latency_us"].to_numpy()
    kernel = np.maximum(fit.predicted_us - timed.table["overhead_us"].to_numpy(), SEEN * fit.predicted_us)
    folds = np.array([crc32(b"fold " + str(name).encode()) % FOLDS for name in rows.table["family"]])
    error = np.log(measured / fit.predicted_us)
    mine = Measured(kind, float(sm_counts[0]), sizes, error, kernel / fit.predicted_us, folds).rows(seen)
    choice = best_choice(mine)
    if choice is None:
        return fit
    count, ridge = choice
    ladders = ladders_of(timed.keep(seen), fit.model) if kind in RISING else None
    points = first_points(mine, count, ridge, ladders)
    for _ in range(ROUNDS):
        predicted, _ = best(replace(fit, discrepancy=points).model, timed)
        still = np.log(measured / predicted)[seen]
        points = weighed(replace(mine, target=mine.share * points.at(mine.sizes) + still), points, ridge, ladders)
    corrected = replace(fit, discrepancy=points)
    predicted, _ = best(corrected.model, timed)
    stage = errors_after(DISCREPANCY, rows.table, out, predicted, (), int(seen.sum()))
    return replace(corrected, stages=(*fit.stages, stage), predicted_us=predicted)


def too_few(rows: TimedRows, out: np.ndarray, fewest: int = FEWEST_ROWS) -> bool:
    """Whether the rows that a fit may see, or their shape families, are too few for a discrepancy of their own."""
    seen = ~out & (_sizes(rows)[:, 0] > 0)
    return bool(seen.sum() < fewest or rows.table["family"][seen].nunique() < FEWEST_FAMILIES)


def _sizes(rows: TimedRows) -> np.ndarray:
    """The problem (rows, PROBLEM) that each row's kernels are of."""
    return np.stack([np.asarray(x)[rows.starts] for x in rows.kernels.problem], axis=-1).astype(float)


def best_choice(rows: Measured, counts: Sequence[int] = COUNTS) -> tuple[int, float] | None:
    """Return how many points of ``counts``, and which of RIDGES, predict families left out in turn best; None where
    they are predicted as well without."""
    error = {(count, ridge): np.zeros(len(rows.target)) for ridge in RIDGES for count in counts}
    for fold in range(FOLDS):
        out = rows.fold == fold
        left = rows.rows(out)
        for ridge in RIDGES:
            for count, points in picked(rows.rows(~out), counts, ridge).items():
                error[count, ridge][out] = left.target - left.share * points.at(left.sizes)
    mean = {choice: float(np.abs(of).mean()) for choice, of in error.items()}
    found = min(mean, key=lambda choice: mean[choice])
    return found if mean[found] < (1 - GAIN) * float(np.abs(rows.target).mean()) else None


def picked(rows: Measured, counts: Sequence[int], ridge: float) -> dict[int, Points]:
    """Return the discrepancies of so many points each, picked among the rows' sizes; all where they are fewer."""
    target, sizes = np.clip(rows.target, -WIDEST, WIDEST), np.unique(rows.sizes, axis=0)
    near, centers = rows.near(sizes), features(sizes, rows.kind, rows.sm_count)
    squares = near**2
    left, trust, places, weights = target.copy(), np.ones(len(target)), [], np.zeros(0)
    found, most = {}, min(max(counts), len(sizes))
    for number in range(1, most + 1):
        gain = (near.T @ (trust * left)) ** 2 / (squares.T @ trust + ridge)
        gain[places] = -1.0
        places.append(int(gain.argmax()))
        if number < 2 * TOGETHER or number % max(TOGETHER, number // 8) == 0 or number in (*counts, most):
            like = likeness(centers[places], centers[places])
            weights, left, trust = _robust(near[:, places], like, target, left, ridge)
        else:
            column = near[:, places[-1]]
            left = left - column * (column @ (trust * left)) / (column**2 @ trust + ridge)
        if number in counts:
            found[number] = rows.points(sizes[places], weights)
    return {count: found.get(count) or rows.points(sizes[places], weights) for count in counts}


def first_points(rows: Measured, count: int, ridge: float, ladders: Ladders | None) -> Points:
    """Return a discrepancy of ``count`` points of the rows' sizes; by which no time falls on ``ladders``, if there are
    any, with OF_LADDERS more where this takes them."""
    if ladders is None:
        return picked(rows, (count,), ridge)[count]
    count = min(max(count, FEWEST_OF_ROWS), MOST_OF_ROWS)
    points = picked(rows, (count,), ridge)[count]
    for _ in range(TIMES):
        condition = NeverFalling(ladders, points)
        points = _weighed(rows, points, ridge, condition.solve)
        sizes = condition.wanted(points, OF_LADDERS // TIMES)
        points = points._replace(
            sizes=np.concatenate([points.sizes, sizes]), weights=np.pad(points.weights, (0, len(sizes)))
        )
    return points


def weighed(rows: Measured, points: Points, ridge: float, ladders: Ladders | None = None) -> Points:
    """Return the discrepancy of the same points, with weights for these rows; by which no time falls on ``ladders``."""
    return _weighed(rows, points, ridge, NeverFalling(ladders, points).solve if ladders else np.linalg.solve)


def _weighed(rows: Measured, points: Points, ridge: float, solve: Solve) -> Points:
    near, centers = rows.near(points.sizes), points.features(points.sizes)
    target = np.clip(rows.target, -WIDEST, WIDEST)
    left = target - near @ points.weights
    weights, _, _ = _robust(near, likeness(centers, centers), target, left, ridge, solve)
    return points._replace(weights=weights)


def _robust(
    near: np.ndarray,
    like: np.ndarray,
    target: np.ndarray,
    left: np.ndarray,
    ridge: float,
    solve: Solve = np.linalg.solve,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights of the least ROBUST errors and ``ridge`` prior, what they leave of ``target``, each row's trust.

    ``left``: what the weights of before leave, by which rows are trusted at first. ``solve``: what solves the
    weights' equations.
    """
    prior = ridge * (like + JITTER * np.eye(len(like)))
    weights, trust = np.zeros(len(like)), np.ones(len(target))
    for _ in range(3):
        trust = ROBUST / np.sqrt(left**2 + ROBUST**2)
        weights = solve(near.T @ (trust[:, None] * near) + prior, near.T @ (trust * target))
        left = target - near @ weights
    return weights, left, trust
