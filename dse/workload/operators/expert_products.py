"""Grouped products of a mixture's experts: whose kernels run them, by types, generation of instructions and release."""

from functools import cache
from math import inf
from typing import NamedTuple

from dse.base.package_tables import read_table
from dse.workload.operators.expert_rows import ExpertRows
from dse.workload.operators.gemm_main_loop import Tile
from dse.workload.operators.narrow_products import WARP_LEVEL, generation_on, nearest_release

EXPERTS = "experts"
"""Kind of the implementations of such products."""

WARP_LEVELS = {"sm80": (8.0, 8.9), "sm89": (8.9, 9.0), "sm120": (12.0, 13.0)}
"""Generation of warp-level instructions -> compute capabilities from, and below, which it is of: those of 16 and 8 bits
in integers; with FP8; with FP4 (PTX ISA, mma)."""

ALIGNED = 16
"""Elements that a row of weights is a multiple of, where a kernel of Triton loads whole vectors of it."""


SPANS = ("tokens", "of_expert", "pairs")
"""What a tile is chosen by: tokens in all, these over the experts of a rank, and pairs of both over them. The table's
columns ``least_`` and ``most_`` of each say for how many it runs; empty cells set no end."""


class ExpertTile(NamedTuple):
    """A tile that a library runs by ``warpgroup`` instructions or not, with more than the least and at most the most of
    each of SPANS."""

    tile: Tile
    warpgroup: bool
    spans: tuple[tuple[float, float], ...]

    def runs(self, *numbers: float) -> bool:
        """Whether it runs for so many of each of SPANS."""
        return all(least < x <= most for (least, most), x in zip(self.spans, numbers, strict=True))


class ExpertKernels(NamedTuple):
    """What a release runs: the ``implementation`` of its products' costs; its ``tiles``, and ``tuned`` ones that it
    chooses among for shapes in its tables.

    ``strays``: pairs of experts of other ranks are computed, by the rank's first expert. ``gathers``: products gather
    their rows themselves, and other passes go over all pairs of tokens that are met. ``fuses``: products up end with
    the activation, which is no pass of its own. ``launches`` [1] of choice, sorting and other small passes; latencies
    of memory that these wait for, ``expert_waits`` [1/expert] and ``pair_waits`` [1/1000 pairs]; ``stretch`` [1] of
    passes over activations; ``unaligned`` [1] of products down whose rows of weights are no
    multiple of ALIGNED.
    """

    implementation: str
    tiles: tuple[ExpertTile, ...]
    tuned: tuple[ExpertTile, ...]
    strays: bool
    gathers: bool
    fuses: bool
    launches: float
    expert_waits: float
    pair_waits: float
    stretch: float
    unaligned: float

    def tiles_of(self, rows: ExpertRows) -> list[ExpertTile]:
        """Return the tiles that may run for the experts' ``rows``."""
        if rows.tuned and self.tuned:
            return list(self.tuned)
        tokens = rows.met if self.strays else rows.tokens
        of_expert = tokens / rows.local
        return [tile for tile in self.tiles if tile.runs(tokens, of_expert, of_expert * rows.chosen)]

    def rows_of(self, rows: ExpertRows, width: int) -> ExpertRows:
        """Return the rows as this library computes them, of experts of ``width`` [element] on a rank."""
        tuned = bool(self.tuned) and (rows.local, float(width)) in _tuned_shapes()
        return rows.computed_by(self.strays, tuned)


@cache
def _tiles() -> dict[str, tuple[ExpertTile, ...]]:
    found: dict[str, tuple[ExpertTile, ...]] = {}
    for row in read_table("calibration/expert_tiles.csv"):
        tile = Tile(*(int(row[name]) for name in ("rows", "columns", "warps", "depth", "stages")))
        spans = tuple((float(row[f"least_{name}"] or 0.0), float(row[f"most_{name}"] or inf)) for name in SPANS)
        found[row["tiles"]] = (*found.get(row["tiles"], ()), ExpertTile(tile, row["warpgroup"] == "1", spans))
    return found


@cache
def _tuned_shapes() -> set[tuple[float, float]]:
    """(experts of a rank, width of one on a rank) of sglang's tables of tuned tiles."""
    return {(float(row["experts"]), float(row["width"])) for row in read_table("calibration/expert_tuned_shapes.csv")}


@cache
def _kernels() -> dict[tuple[str, str, str], dict[str, ExpertKernels]]:
    """(activations, weights, generation) -> release -> what it runs."""
    found: dict[tuple[str, str, str], dict[str, ExpertKernels]] = {}
    for row in read_table("calibration/expert_products.csv"):
        tuned = _tiles()[row["tuned_tiles"]] if row["tuned_tiles"] else ()
        numbers = (float(row[name]) for name in COSTS)
        flags = (row[name] == "1" for name in ("strays", "gathers", "fuses"))
        kernels = ExpertKernels(row["implementation"], _tiles()[row["tiles"]], tuned, *flags, *numbers)
        for activations in row["activations"].split(";"):
            for weights in row["weights"].split(";"):
                found.setdefault((activations, weights, row["generation"]), {})[row["release"]] = kernels
    return found


COSTS = ("launches", "expert_waits", "pair_waits", "stretch", "unaligned")
"""Fitted costs of a release beside those of its products, in the order of :class:`ExpertKernels`."""


def expert_kernels(
    activations: str,
    weights: str,
    capabilities: tuple[float, float] | None,
    warpgroup: bool,
    release: str = "",
) -> ExpertKernels | None:
    """Return what runs a mixture's products on GPUs of these compute capabilities: the kernels of the nearest release
    (:func:`~dse.workload.operators.narrow_products.nearest_release`); None where the GPUs are of several generations,
    or the costs of other products are the nearest."""
    ends = {_generation(capability, warpgroup) for capability in capabilities or ()}
    known = _kernels().get((activations, weights, ends.pop())) if len(ends) == 1 else None
    return known[nearest_release(release, known)] if known else None


def _generation(capability: float, warpgroup: bool) -> str:
    """The generation of a GPU's newest instructions; of warp-level ones by what they multiply."""
    found = generation_on({"compute_capability": capability, "warpgroup_mma": float(warpgroup)})
    if found != WARP_LEVEL:
        return found
    return next((name for name, (low, high) in WARP_LEVELS.items() if low <= capability < high), found)
