"""Matrix products as kernels: tile, warps, stages and split-K chosen among realistic candidates."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from dse.base.constants import constant
from dse.base.units import KIB
from dse.hardware.data_types import BITS, TENSOR_DTYPES, data_types, element_bytes
from dse.workload.implementation import IMPLEMENTATIONS, KINDS, implementation_index
from dse.workload.kernel import PROBLEM, Kernel
from dse.workload.operator import FOREVER, Candidate, Operator
from dse.workload.operators.expert_products import ALIGNED, ExpertKernels, expert_kernels
from dse.workload.operators.expert_rows import ExpertRows
from dse.workload.operators.gemm_library import REPRESENTATIVE, Library
from dse.workload.operators.gemm_main_loop import (
    ALONE,
    CLUSTERS,
    START,
    Cluster,
    Tile,
    Types,
    epilogue,
    instruction_columns,
    l2_bytes,
    main_loop,
    registers,
    sharing_pair,
    stage_bytes,
)
from dse.workload.operators.matrix_instructions import (
    MMA_884,
    TCGEN05,
    WGMMA,
    MatrixInstruction,
    NoInstructionError,
    instruction_fma,
    instructions_for,
)
from dse.workload.operators.narrow_products import NARROW, WARP_LEVEL, NarrowTile, generation_of, narrow_kernels

MAX_SPLIT_CTAS = 1024
"""Split-K is tried up to this many CTAs: beyond it every GPU in reach is full without."""

FEWEST_STAGES = 2
"""Of a pipeline: one is computed with while the next is loaded."""

PRODUCTS_KEPT = 256
"""Products whose kernels are kept for the next that are alike: some 200 kB each."""

SIMT = "matrix_simt"
"""Implementation of products on CUDA cores, whatever the library."""

SCATTERED = constant("scattered_operand_slowdown")
"""DRAM time per byte of an operand that lies contiguous along k, under Volta's kernels (fitted to the V100's rows)."""

PAGE_BYTES = int(constant("dram_page_bytes"))
"""Rows whose length is a multiple of this are read at full speed all the same (V100: k = 2048 and 4096)."""


@dataclass(frozen=True)
class Gemm:
    """C[m,n] = A[m,k] B[k,n], ``batch`` of them (an expected number need not be whole); B is the weights.

    Types: ``a``, ``b`` in memory, ``compute`` in the tensor core, ``out`` of the result. ``a_distance``,
    ``b_distance`` and ``out_distance`` [B] are the bytes touched since A was written, since B was last read, and until
    the result's buffer is written again. ``a_along_k``, ``b_along_k``: the operand lies contiguous along k, as BLAS has
    a transposed A and a plain B. ``filled``: share of the rows of A and C that are asked for, where whole rows stand
    for an expected number: tiles compute all of them, and nothing is read or written for the rest. ``groups``: rows of
    the products, where these are the experts of a mixture and have unlike ones, ``m`` in the mean of ``batch``.
    """

    m: float
    n: float
    k: float
    batch: float = 1.0
    a: str = "bf16"
    b: str = "bf16"
    compute: str = "bf16"
    out: str = "bf16"
    a_distance: float = FOREVER
    b_distance: float = FOREVER
    out_distance: float = FOREVER
    a_along_k: bool = False
    b_along_k: bool = False
    filled: float = 1.0
    groups: ExpertRows | None = None

    def row_tiles(self, rows: int) -> float:
        """Return the tiles of so many ``rows`` along m, of all products of the batch."""
        return self.groups.tiles(rows) if self.groups else self.batch * ceil(self.m / rows)

    @property
    def types(self) -> Types:
        """Data types of what is read and of the instructions."""
        return Types(self.a, self.b, self.compute)

    @property
    def a_bytes(self) -> float:
        """Bytes of A."""
        return self.batch * self.m * self.filled * self.k * element_bytes(self.a)

    @property
    def b_bytes(self) -> float:
        """Bytes of B."""
        return self.batch * self.k * self.n * element_bytes(self.b)

    @property
    def out_bytes(self) -> float:
        """Bytes of C."""
        return self.batch * self.m * self.filled * self.n * element_bytes(self.out)

    @property
    def fma(self) -> float:
        """Multiply-adds that are asked for."""
        return self.batch * self.m * self.filled * self.n * self.k


def blas_result(dtype: str) -> str:
    """Return the type that a library returns a product in: sums of int8 in 32 bits, of other narrow types in 16."""
    return data_types()[dtype].result


def gemm_operator(
    name: str,
    gemm: Gemm,
    capabilities: tuple[float, float] | None = None,
    warpgroup: bool = True,
    phase: str = "kernel",
    repeats: float = 1.0,
    library: Library = REPRESENTATIVE,
) -> Operator:
    """Return the operator of a matrix product; raises NoInstructionError when none computes in its type.

    ``capabilities`` and ``warpgroup`` say for which GPUs candidates are worth making (None: for all); ``library`` holds
    the tiles and splits.
    """
    candidates = _candidates(gemm, capabilities, warpgroup, library)
    if not candidates:
        raise NoInstructionError(name, gemm.compute)
    batch = f"{gemm.batch:g} x " if gemm.batch != 1 else ""
    shape = f"{batch}{gemm.m:g} x {gemm.n:g} x {gemm.k:g} {gemm.compute}"
    return Operator(name, "gemm", candidates, repeats, phase, shape, frozenset({gemm.a, gemm.b, gemm.compute}))


@lru_cache(maxsize=PRODUCTS_KEPT)
def _candidates(
    gemm: Gemm, capabilities: tuple[float, float] | None, warpgroup: bool, library: Library
) -> tuple[Candidate, ...]:
    """The kernels of a product; kept, since the layers of a network and its steps repeat their products."""
    instructions = instructions_for(capabilities, warpgroup, gemm.compute)
    experts = expert_kernels(gemm.a, gemm.b, capabilities, warpgroup, library.framework) if gemm.groups else None
    # Kernels that widen experts' weights compute with warp-level instructions, on any GPU, unless a library's own
    # tiles say otherwise (vllm-project/vllm csrc/moe/marlin_moe_wna16: mma.m16n8k16).
    if BITS[gemm.b] < BITS[gemm.compute] == 16 and gemm.groups and experts is None:
        instructions = [instruction for instruction in instructions if not instruction.warpgroup]
    every = instructions
    if library.warpgroup_alone and any(instruction.warpgroup for instruction in instructions):
        instructions = [instruction for instruction in instructions if instruction.warpgroup]
    single = gemm.batch == 1 and gemm.groups is None and gemm.compute != "fp32"
    generations = [generation_of(instruction, capabilities, warpgroup) for instruction in instructions]
    narrow = [narrow_kernels(gemm.a, gemm.b, one, library.framework) if single else None for one in generations]
    ran_as = SIMT if gemm.compute == "fp32" else library.ran_as(warpgroup)
    found: list[Candidate] = []
    if experts:  # of few rows a library may have warp-level kernels alone, on any GPU
        made = [
            tuple(one for i in those for one in _of_experts(gemm, i, experts, library))
            for those in (instructions, every)
        ]
        return made[0] or made[1]
    for instruction, generation, own in zip(instructions, generations, narrow, strict=True):
        if own and not own.splits and generation != WARP_LEVEL and not instruction.warpgroup:
            continue  # kernels that CUTLASS and its like make for a generation use its own instructions
        number = implementation_index((own.implementation if own else "") or ran_as)
        made_by = _in_pairs(library) if own and own.whole_clusters else library
        found += [
            _candidate(gemm, instruction, tile, split, cluster, made_by, number)
            for whole in _tiles(gemm, instruction, library, own.tiles if own else ())
            for split in ([1] if own and not own.splits else _splits(gemm, instruction, whole, library))
            for cluster in _clusters(gemm, instruction, whole, made_by, split)
            for tile in _pipelines(gemm, instruction, whole, cluster, library)
        ]
    return tuple(found)


def _of_experts(
    gemm: Gemm, instruction: MatrixInstruction, own: ExpertKernels, library: Library
) -> Iterator[Candidate]:
    """The kernels of a library that has its own for a mixture's products. A compiler makes warp-level ones of all
    tiles, which run where a GPU has no others."""
    number, stretch = implementation_index(own.implementation), own.unaligned if gemm.k % ALIGNED else 1.0
    for tile, warpgroup, _ in own.tiles_of(gemm.groups) if gemm.groups else ():
        if instruction.warpgroup and not warpgroup:
            continue
        made = _candidate(gemm, instruction, tile, 1, ALONE, library, number)
        assert isinstance(made.kernel, Kernel)
        instead = made.kernel.shared_kib if warpgroup and not instruction.warpgroup else 0.0
        yield replace(made, kernel=replace(made.kernel, stretch=stretch, unless_kib=0.0, unless_warpgroup_kib=instead))


def _in_pairs(library: Library) -> Library:
    """The library with clusters of two CTAs, the last of which is launched whole."""
    return replace(library, whole_clusters=True, clusters=tuple(c for c in library.clusters if c <= 2) or (2,))


def _tiles(gemm: Gemm, instruction: MatrixInstruction, library: Library, own: tuple[NarrowTile, ...]) -> list[Tile]:
    """Tiles a library would try: a side above 64 less than twice its dimension, one below 64 covering it whole; of its
    ``own`` for narrow types those for so many rows."""
    warpgroup_tiles = (
        (*library.larger_tiles, *library.warpgroup_tiles) if instruction is WGMMA else library.warpgroup_tiles
    )
    on_tensor_cores = warpgroup_tiles if instruction.warpgroup else library.warp_tiles
    shapes = library.simt_tiles if gemm.compute == "fp32" else on_tensor_cores
    stage_bytes = 128 if instruction.warpgroup else 64
    depth = max(1, int(stage_bytes * 8 / BITS[gemm.compute]))
    if own:
        fitting = [t[:3] for t in own if t.least_m <= gemm.m <= t.most_m]
    else:
        shapes = [s for s in shapes if _takes(instruction, s[0], s[1])]
        fitting = [s for s in shapes if _side_fits(s[0], gemm.m) and _side_fits(s[1], gemm.n)]
        fitting = fitting or [min(shapes, key=lambda s: abs(s[0] - gemm.m) + abs(s[1] - gemm.n))]
    return [Tile(r, c, w, depth, instruction.stages) for r, c, w in fitting]


def _side_fits(side: int, dimension: float) -> bool:
    if side < 64:
        return dimension <= side
    return side == 64 or dimension > side / 2


def _takes(instruction: MatrixInstruction, rows: int, columns: int) -> bool:
    """Whether a tile is made of whole instructions: tcgen05 has 128 rows or 64 of one operand, either side's."""
    return instruction is not TCGEN05 or any(side % 128 == 0 or side == 64 for side in (rows, columns))


def _splits(gemm: Gemm, instruction: MatrixInstruction, tile: Tile, library: Library) -> list[int]:
    tiles = gemm.row_tiles(tile.rows) * ceil(gemm.n / tile.columns)
    splits = (library.warpgroup_splits if instruction.warpgroup else ()) or library.splits
    enough = [s for s in splits if gemm.k / s >= library.least_k and tiles * s <= MAX_SPLIT_CTAS]
    return [1, *(s for s in enough if s > 1)]


def _clusters(
    gemm: Gemm, instruction: MatrixInstruction, tile: Tile, library: Library, split: int = 1
) -> list[Cluster]:
    """Clusters of CTAs that share reads where a GPU has them: with large tiles, as many along each side as it has.

    A product that is split along k has few tiles, and clusters of two at most: a larger one was never faster
    (experiments/021_natural_experiments).
    """
    tiles = (ceil(gemm.m / tile.rows), ceil(gemm.n / tile.columns))
    large = instruction.warpgroup and tile.rows * tile.columns >= 128 * 128
    found = [CLUSTERS[ctas] for ctas in library.clusters if split == 1 or ctas <= 2] if large else []
    found = [] if gemm.groups else found  # neighbours along m may be of other experts
    return [c for c in found if c.rows <= tiles[0] and c.columns <= tiles[1]] or [ALONE]


def _pipelines(
    gemm: Gemm, instruction: MatrixInstruction, tile: Tile, cluster: Cluster, library: Library
) -> Iterator[Tile]:
    """A tile with its stages, and with fewer for GPUs whose shared memory does not hold them, as libraries count stages
    (CUTLASS StageCountAuto)."""
    stage_kib = stage_bytes(gemm.types, tile, sharing_pair(instruction, tile, cluster)) / KIB
    fewest = int(max(FEWEST_STAGES, min(tile.stages, library.room_kib / stage_kib)))
    return (replace(tile, stages=stages) for stages in range(tile.stages, fewest - 1, -1))


def _candidate(
    gemm: Gemm,
    instruction: MatrixInstruction,
    tile: Tile,
    split: int,
    cluster: Cluster,
    library: Library,
    implementation: float,
) -> Candidate:
    m_tiles, n_tiles = ceil(gemm.m / tile.rows), ceil(gemm.n / tile.columns)
    row_tiles = gemm.row_tiles(tile.rows)
    working = ceil(row_tiles * n_tiles) * split
    iterations = ceil(ceil(gemm.k / tile.depth) / split)
    # CTAs that fill the last cluster compute on zeros, for which nothing is read: they take an SM's time and no bytes.
    launched = (m_tiles, n_tiles)
    if library.whole_clusters or cluster.ctas > 2:
        launched = tuple(side * ceil(n / side) for n, side in zip(launched, cluster, strict=True))
    ctas = ceil(gemm.batch * launched[0] * launched[1]) * split
    if gemm.groups:
        ctas, m_tiles = working, row_tiles / gemm.batch
    pair = sharing_pair(instruction, tile, cluster)
    stage_kib = stage_bytes(gemm.types, tile, pair) / KIB
    from_l2 = l2_bytes(gemm.types, tile, working * iterations, cluster)
    kernel = Kernel(
        start=START,
        loop=main_loop(gemm.types, instruction, tile, iterations, pair),
        end=epilogue(tile, 4.0 if split > 1 else element_bytes(gemm.out)),
        ctas=ctas,
        warps=tile.warps,
        registers=registers(instruction, tile),
        shared_kib=stage_kib * tile.stages,
        unless_kib=stage_kib * (tile.stages + 1) if tile.stages < instruction.stages else 0.0,
        cluster=cluster.ctas,
        launches=1 if split == 1 else 2,
        compute_capability=instruction.compute_capability,
        capability_end=instruction.capability_end,
        warpgroup=float(instruction.warpgroup),
        tensor_dtype=TENSOR_DTYPES.index(gemm.compute) if gemm.compute in TENSOR_DTYPES else 0,
        uses_tensor=float(gemm.compute != "fp32"),
        tensor_instruction_fma=instruction_fma(instruction, gemm.compute, instruction_columns(tile)),
        pipelined=1.0,
        m_tiles=m_tiles,
        n_tiles=n_tiles,
        tile_aspect=tile.columns / tile.rows,
        l2_bytes=from_l2 + gemm.out_bytes + 2 * _partial_bytes(gemm, split),
        fma=gemm.fma,
        fma_lanes=float(gemm.compute == "fp32"),
        implementation=implementation,
        problem=_problem(gemm, KINDS[IMPLEMENTATIONS[int(implementation)]]),
        **_traffic(gemm, instruction, split),
    )
    label = f"{instruction.name} {tile.rows}x{tile.columns}" + (f" split-k {split}" if split > 1 else "")
    label += f" cluster {cluster.rows}x{cluster.columns}" if cluster.ctas > 2 else ""
    return Candidate(label, kernel)


def _traffic(gemm: Gemm, instruction: MatrixInstruction, split: int) -> dict[str, float]:
    """Bytes to and from DRAM, and how long they are kept: B is read cold, A warm, results are written."""
    a_read = gemm.a_bytes * _scattered(gemm.a_along_k, gemm.k * element_bytes(gemm.a), instruction)
    b_read = gemm.b_bytes * _scattered(gemm.b_along_k, gemm.k * element_bytes(gemm.b), instruction)
    partial_bytes = _partial_bytes(gemm, split)
    again = 2 * partial_bytes + gemm.out_bytes  # partial results are read and written before the next launch's
    return {
        "cold_bytes": b_read,
        "cold_distance": gemm.b_distance,
        "warm_bytes": a_read,
        "warm_distance": gemm.a_distance,
        "write_bytes": gemm.out_bytes + partial_bytes,
        "write_distance": min(gemm.out_distance, again) if split > 1 else gemm.out_distance,
        "result_bytes": gemm.out_bytes,
        "result_distance": gemm.out_distance,
        "a_bytes": a_read,
        "b_bytes": b_read,
        "read_share": (gemm.a_bytes + gemm.b_bytes) / (a_read + b_read),
        "reread_distance": (gemm.a_bytes + gemm.b_bytes) / max(gemm.batch, 1.0),  # within one product of a batch
    }


def _partial_bytes(gemm: Gemm, split: int) -> float:
    """Bytes of the partial results that CTAs along k leave for a second kernel to add up."""
    return gemm.batch * gemm.m * gemm.filled * gemm.n * 4.0 * split if split > 1 else 0.0


def _problem(gemm: Gemm, kind: str) -> tuple[float, ...]:
    """The product's size where it is plain, and in 16 bits or of a narrow type with costs of its own: as those are that
    libraries were measured with."""
    plain = gemm.batch == 1 and gemm.filled == 1 and gemm.groups is None
    measured = kind == NARROW or (gemm.a == gemm.b == gemm.compute and BITS[gemm.compute] == 16)
    return (gemm.m, gemm.n, gemm.k, 0.0, 0.0) if plain and measured else (0.0,) * PROBLEM


def _scattered(along_k: bool, row_bytes: float, instruction: MatrixInstruction) -> float:
    """What a byte of an operand costs in DRAM: Volta's kernels take 64 bytes of each row at a time, and of rows along k
    they reach half the bandwidth unless these fill whole pages (measured; why is not known)."""
    slow = along_k and instruction is MMA_884 and row_bytes % PAGE_BYTES != 0
    return SCATTERED if slow else 1.0
