"""Products of narrow types: whose kernels run them, by the types, the generation of instructions and the release of a
framework."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from math import inf
from typing import NamedTuple

from dse.base.package_tables import read_table
from dse.workload.operators.matrix_instructions import TCGEN05, WGMMA, MatrixInstruction

NARROW = "narrow"
"""Kind of the implementations of such products."""

HOPPER, BLACKWELL, WARP_LEVEL = "hopper", "blackwell", "warp"
"""Generations of matrix instructions: warpgroup's, those of tensor memory, and warp-level ones."""

RELEASE = re.compile(r"([a-z]+)[-_]?([\d._]*)")
"""A framework and the numbers of its version, as ``vllm-0.24.0``."""


class NarrowTile(NamedTuple):
    """A tile that a library runs with ``least_m`` to ``most_m`` rows of the product."""

    rows: int
    columns: int
    warps: int
    least_m: float
    most_m: float


class NarrowKernels(NamedTuple):
    """What a release runs.

    ``implementation`` of its costs, "" where those of 16 bits are the nearest; its ``tiles``, none where any may run;
    whether its last clusters are launched whole, and whether CTAs share a tile's contraction.
    """

    implementation: str
    tiles: tuple[NarrowTile, ...] = ()
    whole_clusters: bool = False
    splits: bool = True


@cache
def _kernels() -> dict[tuple[str, str, str], dict[str, NarrowKernels]]:
    """(activations, weights, generation) -> release -> what it runs."""
    tiles: dict[str, tuple[NarrowTile, ...]] = {}
    for row in read_table("calibration/narrow_tiles.csv"):
        rows, columns, warps = (int(row[name]) for name in ("rows", "columns", "warps"))
        tile = NarrowTile(rows, columns, warps, float(row["least_m"] or 0.0), float(row["most_m"] or inf))
        tiles[row["tiles"]] = (*tiles.get(row["tiles"], ()), tile)
    found: dict[tuple[str, str, str], dict[str, NarrowKernels]] = {}
    for row in read_table("calibration/narrow_products.csv"):
        own = tiles[row["tiles"]] if row["tiles"] else ()
        kernels = NarrowKernels(row["implementation"], own, row["whole_clusters"] == "1", row["splits"] == "1")
        for activations in row["activations"].split(";"):
            for weights in row["weights"].split(";"):
                found.setdefault((activations, weights, row["generation"]), {})[row["release"]] = kernels
    return found


def narrow_kernels(activations: str, weights: str, generation: str, release: str = "") -> NarrowKernels | None:
    """Return what runs a product of narrow types: the kernels of the nearest release (:func:`nearest_release`), None
    where no release's are known, and those of products in 16 bits are the nearest."""
    known = _kernels().get((activations, weights, generation))
    return known[nearest_release(release, known)] if known else None


def nearest_release(release: str, known: Iterable[str]) -> str:
    """Return the one of some ``known`` releases that is nearest: of the same framework the newest that is no newer,
    else its oldest; of another framework the first that is listed."""
    known = list(known)
    framework, version = _parsed(release)
    mine = sorted((_parsed(one)[1], one) for one in known if _parsed(one)[0] == framework)
    older = [one for number, one in mine if number <= version]
    return older[-1] if older else mine[0][1] if mine else known[0]


@cache
def _parsed(release: str) -> tuple[str, tuple[int, ...]]:
    """The framework of a release, and its version as numbers."""
    found = RELEASE.match(release)
    numbers = re.findall(r"\d+", found[2]) if found else []
    return (found[1] if found else ""), tuple(map(int, numbers))


def generation_of(instruction: MatrixInstruction, capabilities: tuple[float, float] | None, warpgroup: bool) -> str:
    """Return the generation whose kernels an instruction is of, on GPUs of these compute capabilities: warp-level
    instructions are the newest GPU's own where it has ``warpgroup`` ones."""
    if instruction in (WGMMA, TCGEN05):
        return HOPPER if instruction is WGMMA else BLACKWELL
    return _generation(capabilities[1] if capabilities and warpgroup else 0.0)


def generation_on(numbers: Mapping[str, float]) -> str:
    """Return the generation of a GPU's newest instructions, by its attributes."""
    return _generation(numbers["compute_capability"] if numbers["warpgroup_mma"] > 0 else 0.0)


def _generation(capability: float) -> str:
    for instruction, generation in ((WGMMA, HOPPER), (TCGEN05, BLACKWELL)):
        if instruction.compute_capability <= capability < instruction.capability_end:
            return generation
    return WARP_LEVEL
