"""The library of matrix kernels: which tiles and splits it was compiled with, apart from the GPU it runs on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from dse.base.units import WARP_SIZE

TileShape = tuple[int, int, int]
"""(rows, columns, warps) of a CTA's tile."""


OTHER_REGISTERS = 48
"""Registers of a thread beside the results that it holds, about."""

LARGER_TILES: tuple[TileShape, ...] = ((256, 256, 16), (256, 512, 32))
"""Warpgroup tiles beyond those of the libraries: their results need 90,112 and 180,224 registers an SM."""

SIMT_TILES: tuple[TileShape, ...] = (
    (256, 128, 8), (128, 256, 8), (128, 128, 8), (256, 64, 8), (64, 256, 8), (128, 64, 4), (64, 128, 4), (64, 64, 4),
    (128, 32, 4), (32, 128, 4), (64, 32, 2), (32, 64, 2), (32, 32, 1),
)  # fmt: skip
"""Tiles of products on CUDA cores, eight by eight results a lane or fewer (CUTLASS simt_sgemm, cuBLAS's names)."""


@dataclass(frozen=True)
class Library:
    """What a library of matrix products can choose from.

    ``warp_tiles`` and ``warpgroup_tiles``: tiles with warp-level and with warpgroup-level instructions; of the latter a
    side that is no multiple of 64 is the instruction's N (operands swapped). ``splits``: CTAs that share one tile's
    contraction, each with ``least_k`` elements of k or more; ``simt_tiles``: on CUDA cores. ``implementation``: whose
    fitted costs its kernels have, where they run on tensor cores; ``warpgroup_implementation``: the same on GPUs with
    warpgroup instructions, where it differs. ``whole_clusters``: a grid's last cluster is launched in full where its
    tiles end early, as by kernels that are not persistent. ``warpgroup_splits``: ``splits`` of warpgroup tiles where
    they differ. ``warpgroup_alone``: no warp-level tiles where there are others. ``framework``: the release whose
    kernels of narrow types run (:mod:`dse.workload.operators.narrow_products`), "" where that is not known.

    What follows from the GPUs that it is launched on (:meth:`on`): ``clusters``: CTAs of large warpgroup tiles that
    share reads of their operands (multicast); ``room_kib``: the least shared memory of a CTA, in which pipelines of
    fewer stages stand in for those that do not fit; ``larger_tiles``: warpgroup tiles whose results outgrow the
    registers of every GPU that was built, where some GPU has them.
    """

    name: str
    warp_tiles: tuple[TileShape, ...]
    warpgroup_tiles: tuple[TileShape, ...]
    splits: tuple[int, ...]
    least_k: int
    implementation: str = "matrix"
    simt_tiles: tuple[TileShape, ...] = SIMT_TILES
    warpgroup_implementation: str = ""
    whole_clusters: bool = False
    warpgroup_splits: tuple[int, ...] = ()
    warpgroup_alone: bool = False
    clusters: tuple[int, ...] = (2, 4, 8)
    room_kib: float = inf
    larger_tiles: tuple[TileShape, ...] = ()
    framework: str = ""

    def ran_as(self, warpgroup: bool) -> str:
        """Return whose fitted costs kernels have on GPUs with ``warpgroup`` instructions, or without."""
        return (self.warpgroup_implementation if warpgroup else "") or self.implementation

    def on(self, cluster_sizes: Iterable[float], room_kib: float = inf, registers: float = 0.0) -> "Library":
        """Return the library as it is launched on some GPUs.

        ``cluster_sizes`` [CTA] of those with warpgroup instructions: each runs the clusters that it can hold, and CTA
        by CTA where it holds none. ``room_kib`` [KiB]: the least shared memory that a CTA of theirs can have;
        ``registers`` [register/SM]: the most that one of them has.
        """
        sizes = set(cluster_sizes)
        clusters = {cluster for cluster in self.clusters for size in sizes if cluster <= size}
        clusters |= {1 for size in sizes if size < min(self.clusters)}
        larger = tuple(tile for tile in LARGER_TILES if _registers(tile) <= registers)
        clusters = tuple(sorted(clusters, reverse=True)) or self.clusters
        return replace(self, clusters=clusters, room_kib=room_kib, larger_tiles=larger)

    def launched_as(self, other: "Library") -> "Library":
        """Return the library as it is launched on the GPUs that ``other`` is launched on."""
        clusters = tuple(cluster for cluster in other.clusters if cluster in (1, *self.clusters))
        return replace(self, clusters=clusters, room_kib=other.room_kib, larger_tiles=other.larger_tiles)


def _registers(tile: TileShape) -> float:
    """Registers of a CTA: its results, and those that every thread has beside them."""
    rows, columns, warps = tile
    return rows * columns + OTHER_REGISTERS * WARP_SIZE * warps


REPRESENTATIVE = Library(
    name="representative",
    warp_tiles=(
        (256, 128, 8), (128, 256, 8), (128, 128, 4), (128, 64, 4), (64, 128, 4), (64, 256, 4), (64, 64, 4),
        (32, 256, 4), (32, 128, 4), (32, 64, 4), (16, 256, 4), (16, 128, 4), (16, 64, 4), (128, 32, 4), (64, 16, 4),
    ),
    warpgroup_tiles=(
        (128, 256, 8), (160, 192, 12), (96, 256, 16), (128, 224, 8), (128, 160, 8), (160, 128, 8), (128, 128, 8),
        (96, 192, 12), (96, 128, 8), (64, 256, 4), (64, 192, 4), (64, 128, 4), (96, 64, 4), (64, 96, 4), (64, 64, 4),
        (48, 64, 4), (32, 256, 16), (32, 128, 8), (32, 64, 4), (16, 256, 16), (16, 192, 12), (16, 128, 8),
    ),
    splits=(1, 2, 3, 4, 6, 8, 16),
    warpgroup_splits=(1, 2, 3, 4, 6, 8),
    least_k=128,
)  # fmt: skip
"""Tiles that stand for those of :data:`TUNED`: the fewest whose products of language models lose little, on designs of
few SMs, slow L2 and fast DRAM too (experiments/012_timing_calibration/representative.py)."""

WARPGROUP_ALONE = replace(REPRESENTATIVE, name="representative, warpgroup alone", warpgroup_alone=True)
"""The same for spaces in which every design has warpgroup instructions."""

TUNED = Library(
    name="tuned",
    warp_tiles=(
        (256, 128, 8), (128, 256, 8), (128, 128, 4), (128, 64, 4), (64, 128, 4), (64, 256, 4), (256, 64, 4),
        (64, 64, 4), (32, 256, 4), (32, 128, 4), (32, 64, 4), (16, 256, 4), (16, 128, 4), (16, 64, 4), (128, 32, 4),
        (64, 32, 4), (64, 16, 4),
    ),
    warpgroup_tiles=(
        (128, 256, 8), (256, 128, 8), (192, 192, 12), (192, 128, 12), (128, 192, 8), (160, 192, 12), (96, 256, 16),
        (128, 224, 8), (224, 128, 8), (128, 160, 8), (160, 128, 8), (128, 128, 8), (96, 192, 12), (96, 128, 8),
        (128, 96, 8), (64, 256, 4), (64, 192, 4), (64, 128, 4), (128, 64, 8), (96, 64, 4), (64, 96, 4), (64, 64, 4),
        (48, 128, 8), (48, 64, 4), (32, 256, 16), (32, 128, 8), (32, 64, 4), (16, 256, 16), (16, 192, 12),
        (16, 128, 8), (16, 64, 4), (192, 32, 12), (128, 32, 8), (64, 32, 4), (64, 16, 4),
    ),
    splits=(1, 2, 3, 4, 6, 8, 12, 16, 24),
    least_k=128,
)  # fmt: skip
"""Finer tiles and splits, as cuBLAS ships them: what measured rows are predicted with, and calibrations fitted with."""

EARLY = replace(
    TUNED,
    name="early",
    implementation="matrix_early",
    warpgroup_implementation="matrix_early_hopper",
    warp_tiles=(*TUNED.warp_tiles, (192, 128, 8)),
    warpgroup_tiles=(
        (128, 256, 8),
        (256, 128, 8),
        (128, 128, 8),
        (128, 64, 8),
        (64, 128, 4),
        (64, 256, 4),
        (64, 64, 4),
    ),
    whole_clusters=True,
    clusters=(2,),
    warpgroup_splits=(1, 2, 4, 8, 16),
)
"""The library in Hopper's first years: few warpgroup tiles, with sides of 64, 128 and 256 (docs/model/operators.md
2.1), launched in whole clusters, and splits of its warpgroup tiles by powers of two: against a model without clusters
an odd number of tiles along m took up to a tenth longer than an even one, which today's library shows nowhere. Its
warp-level kernels of 192x128 (cuBLAS 12's ``tilesize192x128x32_stage3``, whose 192 would be columns here) fit the
A100's products 0.3 points better by rows, 0.2 by columns, and today's library on the same GPU 0.2 to 0.3 worse
(experiments/012_timing_calibration)."""

LIBRARIES = {library.name: library for library in (REPRESENTATIVE, TUNED, EARLY)}
"""Name -> library."""
