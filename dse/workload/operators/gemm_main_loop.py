"""The main loop of a matrix product: what one CTA does with its tile, in one iteration and at its end.

It follows from tile, instruction and the operands' types, whatever the size of the product. Instruction counts are
those of CUTLASS main loops: tensor instructions, shared-memory fragment loads, global-to-shared copies, address
arithmetic and one barrier.
"""

from dataclasses import dataclass
from functools import cache
from math import log2
from typing import NamedTuple

from dse.base.constants import constant
from dse.hardware.data_types import BITS, element_bytes
from dse.workload.kernel import Interval
from dse.workload.operators.gemm_library import OTHER_REGISTERS
from dse.workload.operators.matrix_instructions import TCGEN05, MatrixInstruction, instruction_fma

VECTOR_BYTES = 16 * 32
"""Bytes a warp moves with one 128-bit load, store or LDSM.x4."""

START = Interval(repeats=1, instructions=40, int32=32, global_waits=1)
"""What a warp does before its first load: addresses, barriers."""


MULTICAST_LOSS = constant("multicast_loss")
"""Time of a byte that is sent to a cluster, for each doubling of its CTAs beyond two."""


class Cluster(NamedTuple):
    """CTAs of a cluster along m and along n."""

    rows: int
    columns: int

    @property
    def ctas(self) -> int:
        """CTAs of the cluster."""
        return self.rows * self.columns


BLOCK = int(constant("fp8_block_elements"))
"""Elements of k that share a scale in FP8 by blocks."""

ALONE = Cluster(1, 1)
"""A CTA that shares nothing."""

CLUSTERS = {1: ALONE, 2: Cluster(2, 1), 4: Cluster(2, 2), 8: Cluster(4, 2)}
"""CTAs -> cluster, as square as pairs of tensor cores along m allow (CUTLASS's cluster shapes for Hopper and
Blackwell)."""


class Types(NamedTuple):
    """Data types of a product's operands, ``a`` and ``b`` in memory, and of its instructions."""

    a: str
    b: str
    compute: str


@dataclass(frozen=True)
class Tile:
    """A CTA's share of a product: rows x columns by ``depth`` elements of k a stage, on ``warps`` warps."""

    rows: int
    columns: int
    warps: int
    depth: int
    stages: int

    @property
    def lane_elements(self) -> float:
        """Results that one lane holds."""
        return self.rows * self.columns / (32 * self.warps)


def sharing_pair(instruction: MatrixInstruction, tile: Tile, cluster: Cluster) -> int:
    """Return how many CTAs' tensor cores share one copy of the columns' operand: two of a cluster, whose rows are whole
    instructions' (PTX ISA, ``cta_group::2``)."""
    return min(cluster.rows, 2) if instruction is TCGEN05 and tile.rows % 128 == 0 else 1


def stage_bytes(types: Types, tile: Tile, pair: int) -> float:
    """Return the bytes that a CTA of ``pair`` loads for one stage: its rows, and its part of the columns."""
    return (tile.rows * element_bytes(types.a) + tile.columns / pair * element_bytes(types.b)) * tile.depth


def l2_bytes(types: Types, tile: Tile, cta_iterations: float, cluster: Cluster) -> float:
    """Return the bytes that the L2 sends, as they take time: CTAs of a cluster along m share one read of the columns'
    operand, those along n one of the rows'. A larger cluster is sent to more slowly (MULTICAST_LOSS)."""
    a = tile.rows * element_bytes(types.a) / cluster.columns
    b = tile.columns * element_bytes(types.b) / cluster.rows
    slower = MULTICAST_LOSS ** max(log2(cluster.ctas) - 1.0, 0.0)
    return cta_iterations * tile.depth * (a + b) * slower


def registers(instruction: MatrixInstruction, tile: Tile) -> float:
    """Return the registers of a thread: accumulators, in tensor memory under tcgen05, and OTHER_REGISTERS."""
    accumulators = 0.0 if instruction.rows == 128 else tile.lane_elements
    return min(255.0, accumulators + OTHER_REGISTERS)


def main_loop(types: Types, instruction: MatrixInstruction, tile: Tile, iterations: int, pair: int) -> Interval:
    """Return one of ``iterations`` of a CTA of ``pair``, as a warp sees it."""
    fma = tile.rows * tile.columns * tile.depth / tile.warps
    load_bytes = stage_bytes(types, tile, pair) / tile.warps
    widened = _widening_instructions(types, instruction, tile) + _promoting_instructions(types, instruction, tile)
    if instruction.warpgroup:
        matrix = fma / instruction_fma(instruction, types.compute, instruction_columns(tile))
        read = instruction.rows + instruction_columns(tile) / pair
        shared_bytes = matrix * read * 32.0 / 4.0  # 32 B of k, shared by four warps
        copies, shared_loads, waits = 1.0, 0.0, 0.0  # one thread starts a bulk copy; operands pass by the registers
        int32 = 6.0
    else:
        matrix = fma / instruction.fma[types.compute]
        fragment_bytes, shared_loads = _fragments(types, tile)
        copies, waits = load_bytes / VECTOR_BYTES, 1.0
        # Asynchronous copies fill shared memory from the L2 port; before them every byte was stored from registers.
        shared_bytes = fragment_bytes + (0.0 if instruction.compute_capability >= 8.0 else load_bytes)
        int32 = 2.0 * copies + 6.0
    cuda_core = types.compute == "fp32"
    return Interval(
        repeats=iterations,
        instructions=matrix + shared_loads + copies + int32 + widened + 2.0,  # 2: barrier and branch
        fp32=widened + (matrix if cuda_core else 0.0),
        int32=int32,
        tensor_fma=0.0 if cuda_core else fma,
        shared_bytes=shared_bytes,
        load_bytes=load_bytes,
        global_waits=1.0 / (tile.stages - 1),
        shared_waits=waits,
        tensor_waits=0.0 if instruction.warpgroup or cuda_core else _chain(types, instruction, tile, fma),
    )


def instruction_columns(tile: Tile) -> int:
    """Return the columns of one warpgroup instruction: the tile's, or its rows where operands are swapped."""
    return min(tile.rows if tile.rows % 64 else tile.columns, 256)


def _fragments(types: Types, tile: Tile) -> tuple[float, float]:
    """Bytes a warp reads from shared memory for its own sub-tile, and its loads: warps stand two by two, or four
    abreast when flat.

    On CUDA cores a lane has its own part of the sub-tile, lanes standing four by eight as suits its shape: a load of
    16 B by every lane is one line of shared memory, which several lanes share.
    """
    warp_rows = 1 if tile.rows <= 32 else 2
    rows, columns = tile.rows / warp_rows, tile.columns / (tile.warps / warp_rows)
    if types.compute == "fp32":
        loads = min(rows / 4.0 + columns / 8.0, rows / 8.0 + columns / 4.0) * tile.depth / 4.0
        return loads * 128.0, loads
    fragment_bytes = (rows + columns) * tile.depth * element_bytes(types.compute)
    return fragment_bytes, fragment_bytes / VECTOR_BYTES


def _chain(types: Types, instruction: MatrixInstruction, tile: Tile, fma: float) -> float:
    """Tensor latencies that a lone warp waits for: steps of k over the independent accumulators of its sub-tile."""
    independent = max(1.0, tile.rows * tile.columns / (tile.warps * 128.0))  # one m16n8 accumulator tile each
    steps = fma / instruction.fma[types.compute] / independent
    return steps / independent


def _widening_instructions(types: Types, instruction: MatrixInstruction, tile: Tile) -> float:
    """ALU instructions a warp spends on widening weights: about 1.5 an element (shift, mask, convert and scale). Of
    scaled formats tcgen05 multiplies 8 bits with 4 as they are (PTX ISA, ``kind::mxf8f6f4``)."""
    mixed = instruction is TCGEN05 and types.a == "mxfp8"
    if types.b == types.compute or BITS[types.b] >= BITS[types.compute] or mixed:
        return 0.0
    return 1.5 * tile.columns * tile.depth / (32.0 * tile.warps)


def _promoting_instructions(types: Types, instruction: MatrixInstruction, tile: Tile) -> float:
    """ALU instructions a warp spends on adding scaled sums to its results, one a block of k for each: scales by block
    leave Hopper's instructions no sum beyond their block (deepseek-ai/DeepGEMM; DeepSeek-V3, 3.3.2)."""
    scaled = types.a == "fp8_block" and instruction is not TCGEN05
    return tile.lane_elements * tile.depth / BLOCK if scaled else 0.0


@cache
def epilogue(tile: Tile, out_element: float) -> Interval:
    """Return a tile's end: accumulators converted, passed through shared memory, stored with 128-bit stores."""
    elements = tile.lane_elements
    stores = elements * out_element / 16.0
    return Interval(
        repeats=1,
        instructions=1.5 * elements + 2 * stores + 20.0,
        fp32=elements,
        int32=20.0,
        shared_bytes=2 * elements * 32 * out_element,
        store_bytes=elements * 32 * out_element,
        shared_waits=1.0,
    )
