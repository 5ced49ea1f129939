"""What the equations leave of a library's measured products: a smooth correction over their shapes.

A library does not always run its fastest kernel, and which shapes it serves badly no equation says. So a calibration
may hold the discrepancy of Kennedy and O'Hagan (Bayesian calibration of computer models, 2001): ln(measured /
predicted) as a Gaussian process over the shape, by a few of its points. Far from every point it is 0, and the equations
stand alone. It depends on the product and on the GPU that was measured, never on the design: what an attribute changes,
the equations say.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.errors import InputError
from dse.toml_file import coefficient, refuse_keys
from dse.workload.implementation import IMPLEMENTATIONS, of_implementation
from dse.workload.kernel import Kernel, Number

TILES = ((128, 128), (256, 128), (128, 256))
"""Rows and columns of the tiles whose last wave tells shapes apart."""

PAIR = 256
"""Rows of two tiles that share an operand: an unfinished pair tells shapes apart, too."""

WAVE_WEIGHT, PAIR_WEIGHT = 3.0, 2.0
"""What a doubling of the last wave's, or pair's, waste counts beside one of the rows. Chosen, as LENGTH was, on fitted
families of A100 and H100 (experiments/012_timing_calibration)."""

LENGTH = 1.5
"""Doublings over which the correction is much the same."""

LARGEST_WEIGHT = 10.0
"""Of a point: no fit comes near."""

KEYS = ("sm_count", "points")


class Points(NamedTuple):
    """A discrepancy as a file holds it: ``shapes`` (points, 3) of products, m, n and k, ``weights`` (points,) of them,
    and ``sm_count`` of the GPU whose waves they filled."""

    shapes: np.ndarray
    weights: np.ndarray
    sm_count: float

    def at(self, shapes: np.ndarray) -> np.ndarray:
        """Return ln(measured / predicted) that is expected of products (rows, 3)."""
        return likeness(features(shapes, self.sm_count), features(self.shapes, self.sm_count)) @ self.weights

    def record(self) -> "Discrepancy":
        """Return it as a timing model holds it whose every implementation has it."""
        one = features(self.shapes, self.sm_count), self.weights, np.asarray(self.sm_count, float)
        return Discrepancy(*(np.broadcast_to(x, (len(IMPLEMENTATIONS), *x.shape)) for x in one))

    def lines(self, place: str = "") -> list[str]:
        """Return the TOML lines of its table, which stands below ``place``, "" or a table's name and a dot."""
        words = (
            "ln(measured / predicted) that the equations leave, over the product's shape (dse/timing/discrepancy.py)"
        )
        lines = [f"[{place}discrepancy] # {words}", f"sm_count = {self.sm_count:g}", "points = [ # m, n, k, weight"]
        rows = zip(self.shapes.tolist(), self.weights.tolist(), strict=True)
        return [*lines, *(f"  [{m:.0f}, {n:.0f}, {k:.0f}, {weight:.4g}]," for (m, n, k), weight in rows), "]"]


class Discrepancy(eqx.Module):
    """The same inside a program: ``centers`` (implementations, points, features), ``weights`` (implementations, points)
    and ``sm_count`` (implementations,), in the order of IMPLEMENTATIONS; without that axis, of one of them."""

    centers: Array | np.ndarray
    weights: Array | np.ndarray
    sm_count: Array | np.ndarray

    def of(self, implementation: Number) -> "Discrepancy":
        """Return that of one implementation."""
        return of_implementation(self, implementation)

    def factor(self, kernel: Kernel) -> Array:
        """Return how many times as long as the equations say the kernel takes: 1 where it is no product of the kind."""
        shape = jnp.stack([jnp.asarray(x, float) for x in (kernel.m, kernel.n, kernel.k)], axis=-1)
        near = likeness(features(shape, self.sm_count), self.centers)
        return jnp.where(shape[..., 0] > 0, jnp.exp(near @ self.weights), 1.0)


def features(shapes: Any, sm_count: Any) -> Any:
    """Return where products (..., 3) lie, (..., features), in doublings: the rows, the results, the depth, how much of
    the last wave of each of TILES is empty, and of the last pair."""
    xp = shapes.__array_namespace__()
    m, n, k = (xp.maximum(shapes[..., i], 1.0) for i in range(3))
    waves = [xp.ceil(m / rows) * xp.ceil(n / columns) / sm_count for rows, columns in TILES]
    wasted = [WAVE_WEIGHT * xp.log2(xp.ceil(w) / w) for w in waves]
    pair = PAIR_WEIGHT * xp.log2(xp.ceil(m / PAIR) * PAIR / m)
    return xp.stack([xp.log2(m), xp.log2(m) + xp.log2(n), xp.log2(k), *wasted, pair], axis=-1)


def likeness(one: Any, others: Any) -> Any:
    """Return the covariance (..., points) of shapes (..., features) with points (points, features), 1 of a shape with
    itself: Matern's of order 3/2."""
    xp = one.__array_namespace__()
    squares = ((one[..., None, :] - others) ** 2).sum(axis=-1)
    # The root's slope is infinite at 0, where a shape is a point itself; nothing descends there, but NaN would spread.
    far = xp.sqrt(3.0 * squares + 1e-12) / LENGTH
    return (1.0 + far) * xp.exp(-far)


def composed(points: Sequence[Points | None]) -> Discrepancy | None:
    """Return one record of all IMPLEMENTATIONS' discrepancies, None where none has any."""
    most = max((len(p.weights) for p in points if p), default=0)
    if not most:
        return None
    found = [_padded(p, most) for p in points]
    return Discrepancy(*(np.stack(part) for part in zip(*found, strict=True)))


def _padded(points: Points | None, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A discrepancy with points of no weight up to ``count``."""
    points = points or Points(np.ones((0, 3)), np.zeros(0), 1.0)
    missing = count - len(points.weights)
    centers = np.pad(features(points.shapes, points.sm_count), ((0, missing), (0, 0)))
    return centers, np.pad(points.weights, (0, missing)), np.asarray(points.sm_count, float)


def read_points(path: Path, place: str, content: Any) -> Points | None:
    """Return the discrepancy of a file's table, None where it has none; ``place`` as for :meth:`Points.lines`.

    Raises InputError.
    """
    if content is None:
        return None
    where = f"{place}discrepancy"
    if not isinstance(content, dict) or not isinstance(content.get("points"), list) or not content["points"]:
        raise InputError(f"{path}: {where} is {content!r}; give {' and '.join(KEYS)}, a list of [m, n, k, weight]")
    refuse_keys(path, where, content, KEYS)
    rows = []
    for number, row in enumerate(content["points"], 1):
        told = f"{where}.points, number {number}"
        if not isinstance(row, list) or len(row) != 4:
            raise InputError(f"{path}: {told} is {row!r}; give [m, n, k, weight]")
        shape = [coefficient(path, told, x, 1.0, 1e9) for x in row[:3]]
        rows.append((*shape, coefficient(path, told, row[3], -LARGEST_WEIGHT, LARGEST_WEIGHT)))
    table = np.array(rows)
    sm_count = coefficient(path, f"{where}.sm_count", content.get("sm_count"), 1.0, 1e4)
    return Points(table[:, :3], table[:, 3], sm_count)
