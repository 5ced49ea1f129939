"""Ladders of products: the same n and k, with more and more rows, and the times that the equations give them.

On these a fit of a discrepancy lets no time fall (:mod:`dse.calibration.timing.never_falling`). Their sizes are those
that networks have, and the shape families that are fitted; no measured time decides any of them.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.hardware.gpu import Gpu
from dse.measured.protocol import protocols
from dse.measured.row_operator import operator
from dse.measured.timed_rows import TimedRows, fastest_us
from dse.timing.discrepancy import TILES
from dse.timing.timing import TimingModel
from dse.workload.kernel import PROBLEM, Kernel
from dse.workload.target import Target

LEAST, MOST, WHOLE = 128.0, 40000.0, 64
"""n and k of ladders: from, to, and multiples of."""

SPREAD = (0.7548776662466927, 0.5698402909980532)
"""Steps of a sequence that fills a square evenly: powers of the inverse of the root of x^3 = x + 1 (Roberts, The
unreasonable effectiveness of quasirandom sequences, 2018)."""

GENERAL, OF_FAMILIES = 128, 32
"""Ladders whose n and k are spread evenly in logs, and those of shape families that are fitted, at most."""

NETWORKS = (
    (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (12288, 4096), (22016, 4096), (4096, 11008),
    (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (2560, 8192), (8192, 2048), (14336, 8192), (8192, 7168),
    (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584), (4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944),
    (128256, 4096), (5120, 5120), (15360, 5120), (5120, 13824), (2048, 2048),
)  # fmt: skip
"""n and k of well known networks' products: Llama 2 and 3 of 7 to 70 billion parameters, the largest also shared out to
four and eight GPUs, Qwen2.5-7B, a head; squares."""

MOST_ROWS = 16384
"""Rows of a ladder's last product."""

EDGES = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096)
"""Rows at which a tile or a pair of them is full: one more is a product of a ladder, too."""

WAVES = (1, 2, 4)
"""The same of full waves of the first of TILES."""

BETWEEN = (1, 2, 4, 12, 24, 48, 8192, MOST_ROWS)
"""Rows between the edges."""

PER_LADDER = 3
"""Falls of a ladder that are told at once, those of one largest time before them by the deepest."""


@dataclass(frozen=True)
class Ladders:
    """Products that gain rows: ``sizes`` (products, PROBLEM), ``logs`` (products,) of the equations' times, which never
    fall on a ladder, and ``places`` (ladders, most) of each one's products, by rows, -1 where it has no more."""

    sizes: np.ndarray
    logs: np.ndarray
    places: np.ndarray

    def falls(self, off: np.ndarray, allowed: float) -> list[tuple[int, int]]:
        """Return where times that are ``off`` (products,), in logs, fall by more than ``allowed`` below the largest one
        before: the places of both, the deepest falls first."""
        there = self.places >= 0
        logs = np.where(there, (self.logs + off)[self.places], -np.inf)
        largest = np.maximum.accumulate(logs, axis=1)
        fall = np.where(there, largest - logs, 0.0)
        found = []
        for _ in range(PER_LADDER):
            last = fall.argmax(axis=1)
            for ladder in np.flatnonzero(fall.max(axis=1) > allowed):
                first = int(logs[ladder, : last[ladder]].argmax())
                pair = int(self.places[ladder, first]), int(self.places[ladder, last[ladder]])
                found.append((float(fall[ladder, last[ladder]]), pair))
                fall[ladder, largest[ladder] == logs[ladder, first]] = 0.0
        return [pair for _, pair in sorted(found, reverse=True)]


def ladders_of(rows: TimedRows, model: TimingModel) -> Ladders:
    """Return ladders by the equations that ``model`` holds, dealt out to the devices of rows of products; each is
    measured as its device's first row was."""
    firsts = np.sort(np.unique(rows.table["device"], return_index=True)[1])
    weights = weights_of(rows.table)
    found = [_on_device(rows, int(i), weights[d :: len(firsts)], model) for d, i in enumerate(firsts)]
    sizes, us = (np.concatenate(part) for part in zip(*found, strict=True))
    starts = np.flatnonzero(np.r_[True, (sizes[1:, 1:] != sizes[:-1, 1:]).any(axis=1)])
    ends = np.r_[starts[1:], len(sizes)]
    places = starts[:, None] + np.arange((ends - starts).max())
    places = np.where(places < ends[:, None], places, -1)
    logs = np.maximum.accumulate(np.where(places >= 0, np.log(us)[places], -np.inf), axis=1)
    return Ladders(np.pad(sizes, ((0, 0), (0, PROBLEM - sizes.shape[1]))), logs[places >= 0], places)


def weights_of(table: pd.DataFrame) -> list[tuple[float, float]]:
    """Return n and k of the ladders: GENERAL ones, OF_FAMILIES of the rows, and NETWORKS."""
    shares = np.arange(1, GENERAL + 1)[:, None] * SPREAD % 1.0
    general = WHOLE * np.rint(LEAST * (MOST / LEAST) ** shares / WHOLE)
    own = table[["n", "k"]].drop_duplicates().sort_values(["n", "k"]).to_numpy(float)
    chosen = own[np.unique(np.linspace(0, len(own) - 1, OF_FAMILIES).round().astype(int))]
    return list(dict.fromkeys((float(n), float(k)) for n, k in [*general.tolist(), *chosen.tolist(), *NETWORKS]))


def rows_of(n: float, sm_count: float) -> list[float]:
    """Return the rows of a ladder's products: edges of tiles and of waves, one more, and some between."""
    rows, columns = TILES[0]
    waves = [rows * (w * sm_count // np.ceil(n / columns)) for w in WAVES]
    edges = {float(m) for m in (*EDGES, *waves) if 1 <= m < MOST_ROWS}
    return sorted({*map(float, BETWEEN), *edges, *(m + 1 for m in edges)})


def _on_device(
    rows: TimedRows, first: int, weights: list[tuple[float, float]], model: TimingModel
) -> tuple[np.ndarray, np.ndarray]:
    """The products (products, m n k) of ladders on the GPU of row ``first``, and their times [us]."""
    gpu = jax.tree.map(lambda x: float(f"{np.asarray(x)[first]:.6g}"), rows.gpus)  # of 32 bits
    row = next(rows.table.iloc[first : first + 1].itertuples(index=False))
    sizes = [(m, n, k) for n, k in weights for m in rows_of(n, gpu.sm_count)]
    return np.array(sizes), _times(row, gpu, sizes, model)


def _times(row: Any, gpu: Gpu, sizes: list[tuple[float, float, float]], model: TimingModel) -> np.ndarray:
    """The times [us] of products that are measured as a row was, on its GPU."""
    way = protocols()[row.harness]
    on = Target.of([vars(gpu)], way.library)
    capability, sm_count = float(gpu.compute_capability), float(gpu.sm_count)
    found = [
        operator(row._replace(m=m, n=n, k=k), capability, way, on.library, on.warpgroup, sm_count) for m, n, k in sizes
    ]
    kernels = Kernel.stack([candidate.kernel for one in found for candidate in one.candidates])
    kernels = jax.tree.map(lambda x: x.astype(np.float32), kernels)
    gpus = jax.tree.map(lambda x: np.full(len(sizes), x, np.float32), gpu)
    places = np.repeat(np.arange(len(sizes)), [len(one.candidates) for one in found])
    return fastest_us(model, TimedRows(pd.DataFrame(index=range(len(sizes))), gpus, kernels, places, ()))[0]
