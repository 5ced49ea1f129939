"""What the equations leave of a library's measured kernels: a smooth correction over the size of the problem.

A library does not always run its fastest kernel, and which sizes it serves badly no equation says. So a calibration
may hold the discrepancy of Kennedy and O'Hagan (Bayesian calibration of computer models, 2001): ln(measured /
predicted) as a Gaussian process over the problem's size, by a few of its points. Far from every point it is 0, and the
equations stand alone. It depends on the problem and on the GPU that was measured, never on the design: what an
attribute changes, the equations say.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.errors import InputError, accepted
from dse.base.toml_file import coefficient, refuse_keys
from dse.workload.implementation import IMPLEMENTATIONS, KINDS, PerImplementation
from dse.workload.kernel import PROBLEM, Kernel
from dse.workload.operators.vector import vector_ops

PRODUCT = ("m", "n", "k")
ATTENTION = ("heads", "queries", "keys", "head_dim", "group")
VECTOR = ("operator", "rows", "columns", "bytes")
SIZES = {
    "matrix": PRODUCT, "narrow": PRODUCT, "attention_prefill": ATTENTION, "attention_decode": ATTENTION,
    "vector": VECTOR,
}  # fmt: skip
"""Kind of implementation -> what its points say of a problem (``problem`` of :class:`dse.workload.kernel.Kernel`)."""

TILES = ((128, 128), (256, 128), (128, 256))
"""Rows and columns of the tiles whose last wave tells products apart."""

PAIR = 256
"""Rows of two tiles that share an operand: an unfinished pair tells products apart, too."""

FEATURES = 4 + len(TILES)

PRODUCT_WEIGHTS = tuple(constant(f"product_distance_{size}") for size in ("rows", "results", "depth"))
WAVE_WEIGHT, PAIR_WEIGHT = constant("product_distance_wave"), constant("product_distance_pair")
"""How far apart, in lengths of the covariance, a doubling puts two products: of their rows, their results and their
depth; of the waste of a last wave; of that of the last pair. Chosen by families left out in turn among the fitted ones
of A100, H100 and H200 and two libraries (experiments/012_timing_calibration)."""

ATTENTION_WEIGHTS = tuple(constant(f"attention_distance_{i}") for i in range(5))
"""The same of attention's sizes, in the order of ATTENTION (experiments/013_attention)."""

VECTOR_WEIGHT, APART = constant("vector_distance"), 10.0
"""The same of a vector kernel's rows and columns (experiments/014_vector_kernels); and how far apart operators are, or
types of another size: one says nothing of another."""

PLACES = (PRODUCT, ATTENTION, VECTOR)
"""What problems may be, in the order of ``Discrepancy.place``."""

LARGEST_WEIGHT = 100.0
"""Of a point: no fit comes near. Two points that lie close together may have large weights of opposite signs."""

KEYS = ("sm_count", "points")


class Points(NamedTuple):
    """A discrepancy as a file holds it: ``sizes`` (points, PROBLEM) of problems, zeros after the SIZES of its ``kind``
    of implementation, ``weights`` (points,) of them, and ``sm_count`` of the GPU whose waves products filled."""

    kind: str
    sizes: np.ndarray
    weights: np.ndarray
    sm_count: float

    def at(self, sizes: np.ndarray) -> np.ndarray:
        """Return ln(measured / predicted) (rows,) that is expected of problems (rows, PROBLEM)."""
        return likeness(self.features(sizes), self.features(self.sizes)) @ self.weights

    def features(self, sizes: np.ndarray) -> np.ndarray:
        """Return where problems (rows, PROBLEM) lie, (rows, FEATURES)."""
        return features(sizes, self.kind, self.sm_count)

    def record(self) -> "Discrepancy":
        """Return it as a timing model holds it whose every implementation has it."""
        return Discrepancy(*(np.broadcast_to(x, (len(IMPLEMENTATIONS), *x.shape)) for x in _padded(self, 0)))

    def lines(self, place: str = "") -> list[str]:
        """Return the TOML lines of its table, which stands below ``place``, "" or a table's name and a dot."""
        words = "ln(measured / predicted) that the equations leave, over the problem's size (dse/timing/discrepancy.py)"
        names = SIZES[self.kind]
        lines = [f"[{place}discrepancy] # {words}", f"sm_count = {self.sm_count:g}"]
        rows = zip(self.sizes[:, : len(names)].tolist(), self.weights.tolist(), strict=True)
        points = (f"  [{', '.join(_written(names, size))}, {weight:.4f}]," for size, weight in rows)
        return [*lines, f"points = [ # {', '.join(names)}, weight", *points, "]"]


class Discrepancy(PerImplementation):
    """The same inside a program: ``centers`` (implementations, points, FEATURES), ``weights`` (implementations,
    points), ``sm_count`` (implementations,), and ``place`` (implementations,) in PLACES of what problems are, in the
    order of IMPLEMENTATIONS; without that axis, of one of them."""

    centers: Array | np.ndarray
    weights: Array | np.ndarray
    sm_count: Array | np.ndarray
    place: Array | np.ndarray

    def factor(self, kernel: Kernel) -> Array:
        """Return how many times as long as the equations say the kernel takes: 1 where its problem is unknown."""
        size = jnp.stack([jnp.asarray(x, float) for x in kernel.problem], axis=-1)
        at = jnp.where(self.place > PLACES.index(PRODUCT), of_attention(size), of_product(size, self.sm_count))
        at = jnp.where(self.place > PLACES.index(ATTENTION), of_vector(size), at)
        return jnp.where(size[..., 0] > 0, jnp.exp(likeness(at, self.centers) @ self.weights), 1.0)


def stretch_of(discrepancy: Discrepancy | None, kernel: Kernel) -> Array:
    """Return how many times as long as the equations say a kernel takes: what it holds itself, and by a discrepancy."""
    factor = jnp.asarray(kernel.stretch)
    return factor if discrepancy is None else factor * discrepancy.factor(kernel)


def limited_by_peaks(factor: Array, least: Array) -> Array:
    """Return ``factor`` so that no time is less than the ``least`` that the data sheet's peaks allow, a share of it."""
    # A choice, so that nothing of it is left in a program that knows the factor to be 1
    # (dse/evaluate/partial_evaluation.py).
    return jnp.where(factor < 1.0, jnp.maximum(factor, jnp.minimum(least, 1.0)), factor)


def features(sizes: np.ndarray, kind: str, sm_count: float) -> np.ndarray:
    """Return where problems (rows, PROBLEM) of a kind of implementation lie, (rows, FEATURES)."""
    if SIZES[kind] is PRODUCT:
        return of_product(sizes, sm_count)
    return of_attention(sizes) if SIZES[kind] is ATTENTION else of_vector(sizes)


def of_product(sizes: Any, sm_count: Any) -> Any:
    """Return where products lie: rows, results, depth, how much of the last wave of each of TILES is empty, and how
    much of the last pair. (..., PROBLEM) to (..., FEATURES), in lengths of the covariance, as :func:`of_attention`."""
    xp = sizes.__array_namespace__()
    m, n, k = (xp.maximum(sizes[..., i], 1.0) for i in range(3))
    waves = [xp.ceil(m / rows) * xp.ceil(n / columns) / sm_count for rows, columns in TILES]
    wasted = [WAVE_WEIGHT * xp.log2(xp.ceil(w) / w) for w in waves]
    pair = PAIR_WEIGHT * xp.log2(xp.ceil(m / PAIR) * PAIR / m)
    logs = xp.log2(m), xp.log2(m) + xp.log2(n), xp.log2(k)
    return xp.stack([*(w * x for w, x in zip(PRODUCT_WEIGHTS, logs, strict=True)), *wasted, pair], axis=-1)


def of_attention(sizes: Any) -> Any:
    """Return where attention lies: the five numbers of its size."""
    xp = sizes.__array_namespace__()
    logs = [w * xp.log2(xp.maximum(sizes[..., i], 1.0)) for i, w in enumerate(ATTENTION_WEIGHTS)]
    return xp.stack([*logs, *(FEATURES - PROBLEM) * [xp.zeros_like(logs[0])]], axis=-1)


def of_vector(sizes: Any) -> Any:
    """Return where vector kernels lie: operator, rows, columns and size of an element."""
    xp = sizes.__array_namespace__()
    rows, columns, element = (xp.log2(xp.maximum(sizes[..., i], 1.0)) for i in (1, 2, 3))
    found = APART * sizes[..., 0], VECTOR_WEIGHT * rows, VECTOR_WEIGHT * columns, APART * element
    return xp.stack([*found, *(FEATURES - len(found)) * [xp.zeros_like(rows)]], axis=-1)


def likeness(one: Any, others: Any) -> Any:
    """Return the covariance (..., points) of problems (..., FEATURES) with points (points, FEATURES), 1 of a problem
    with itself: Matern's of order 3/2."""
    xp = one.__array_namespace__()
    squares = ((one[..., None, :] - others) ** 2).sum(axis=-1)
    # The root's slope is infinite at 0, where a problem is a point itself; nothing descends there, but NaN spreads.
    far = xp.sqrt(3.0 * squares + 1e-12)
    return (1.0 + far) * xp.exp(-far)


def composed(points: Sequence[Points | None]) -> Discrepancy | None:
    """Return one record of all IMPLEMENTATIONS' discrepancies, None where none has any."""
    most = max((len(p.weights) for p in points if p), default=0)
    if not most:
        return None
    found = [_padded(p, most) for p in points]
    return Discrepancy(*(np.stack(part) for part in zip(*found, strict=True)))


def _padded(points: Points | None, count: int) -> tuple[np.ndarray, ...]:
    """The parts of a discrepancy, with points of no weight up to ``count``."""
    points = points or Points("matrix", np.zeros((0, PROBLEM)), np.zeros(0), 1.0)
    missing = max(count - len(points.weights), 0)
    centers = np.pad(points.features(points.sizes), ((0, missing), (0, 0)))
    place = float(PLACES.index(SIZES[points.kind]))
    return centers, np.pad(points.weights, (0, missing)), np.asarray(points.sm_count), np.asarray(place)


def read_points(path: Path, place: str, implementation: str, content: Any) -> Points | None:
    """Return the discrepancy of a file's table, None where it has none; ``place`` as for :meth:`Points.lines`.

    Raises InputError.
    """
    if content is None:
        return None
    where, kind = f"{place}discrepancy", KINDS[implementation]
    if kind not in SIZES:
        raise InputError(f"{path}: {where}: {implementation} has none; products in 16 bits, attention and vectors do")
    names = f"[{', '.join(SIZES[kind])}, weight]"
    if not isinstance(content, dict) or not isinstance(content.get("points"), list) or not content["points"]:
        raise InputError(f"{path}: {where} is {content!r}; give {' and '.join(KEYS)}, a list of {names}")
    refuse_keys(path, where, content, KEYS)
    rows = []
    for number, row in enumerate(content["points"], 1):
        place = f"{where}.points, number {number}"
        if not isinstance(row, list) or len(row) != len(SIZES[kind]) + 1:
            raise InputError(f"{path}: {place} is {row!r}; give {names}")
        if SIZES[kind] is VECTOR:
            row = [_operator(path, place, row[0]), *row[1:]]
        size = [coefficient(path, place, x, 0.0 if SIZES[kind] is VECTOR else 1.0, 1e9) for x in row[:-1]]
        rows.append(
            (*size, *(PROBLEM - len(size)) * [0.0], coefficient(path, place, row[-1], -LARGEST_WEIGHT, LARGEST_WEIGHT))
        )
    table = np.array(rows)
    sm_count = coefficient(path, f"{where}.sm_count", content.get("sm_count"), 1.0, 1e4)
    return Points(kind, table[:, :-1], table[:, -1], sm_count)


def _operator(path: Path, place: str, name: Any) -> float:
    """The number of a vector operator that a file names."""
    if not isinstance(name, str) or name not in vector_ops():
        raise InputError(f"{path}: {place}: no vector operator is called {name!r}; {accepted(str(name), vector_ops())}")
    return vector_ops()[name].number


def _written(names: Sequence[str], size: Sequence[float]) -> list[str]:
    """The numbers of a problem as a file holds them, an operator by its name."""
    numbers = [f"{x:.10g}" for x in size]
    if names is VECTOR:
        named = next(name for name, op in vector_ops().items() if op.number == size[0])
        numbers[0] = f'"{named}"'
    return numbers
