"""Attention as kernels: FlashAttention-like prefill, and decode with the keys split over CTAs."""

from dataclasses import dataclass
from math import ceil

from dse.errors import InputError
from dse.units import KIB
from dse.workload.dtypes import element_bytes
from dse.workload.gemm import VECTOR_BYTES
from dse.workload.instructions import MatrixInstruction, instruction_fma, instructions_for
from dse.workload.kernel import TENSOR_DTYPES, Interval, Kernel
from dse.workload.operator import FOREVER, Candidate, Operator

SOFTMAX_ALU = 5.0
"""ALU instructions a score: scale, maximum, subtract, sum, convert (measured attention: 1/16 MUFU + 5/lanes cycles)."""

SOFTMAX_SFU = 1.0
"""Exponentials a score."""

DECODE_SPLITS = (1, 2, 4, 8, 16, 32, 64)
MAX_DECODE_CTAS = 4096


@dataclass(frozen=True)
class Attention:
    """``batch`` requests, ``heads`` query heads on ``kv_heads`` key-value heads of ``head_dim``, all per GPU.

    ``queries`` new tokens a request attend ``keys`` tokens (those before them and themselves); ``causal`` masks later
    ones. ``dtype`` of the products, ``kv`` of the cache. ``kv_distance`` [B]: bytes touched since the keys were
    written or last read; ``q_distance`` since the queries were; ``out_distance`` until the result's buffer is reused.
    With a ``window`` a causal query attends only that many tokens (0: all). Raises ValueError when there are fewer keys
    than queries.
    """

    batch: float
    heads: int
    kv_heads: int
    head_dim: int
    queries: float
    keys: float
    causal: bool = True
    dtype: str = "bf16"
    kv: str = "bf16"
    q_distance: float = FOREVER
    kv_distance: float = FOREVER
    out_distance: float = FOREVER
    window: int = 0

    def __post_init__(self) -> None:
        if self.keys < self.queries:
            raise ValueError(f"{self.queries:g} queries attend only {self.keys:g} keys; keys count the queries' own")

    @property
    def prefix(self) -> float:
        """Keys before the first query's own."""
        return self.keys - self.queries

    @property
    def visible(self) -> float:
        """Keys that a query attends, averaged over the queries."""
        if not self.causal:
            return self.keys
        window = self.window or self.keys
        growing = min(max(window - self.prefix, 0.0), self.queries)  # queries that still see every key before them
        seen = growing * (2 * self.prefix + growing + 1) / 2 + (self.queries - growing) * window
        return seen / self.queries

    @property
    def q_bytes(self) -> float:
        """Bytes of the queries (and of the result)."""
        return self.batch * self.heads * self.queries * self.head_dim * element_bytes(self.dtype)

    @property
    def kv_bytes(self) -> float:
        """Bytes of the keys and values attended."""
        return 2 * self.batch * self.kv_heads * self.keys * self.head_dim * element_bytes(self.kv)

    @property
    def fma(self) -> float:
        """Multiply-adds of both products, those that the mask removes left out."""
        return 2 * self.batch * self.heads * self.queries * self.visible * self.head_dim


@dataclass(frozen=True)
class Block:
    """A CTA's work: ``rows`` of queries against ``columns`` keys at a time, on ``warps`` warps."""

    rows: int
    columns: int
    warps: int


def attention_operator(
    name: str,
    attention: Attention,
    capabilities: tuple[float, float] | None = None,
    warpgroup: bool = True,
    phase: str = "kernel",
    repeats: float = 1.0,
) -> Operator:
    """Return the operator of an attention layer; raises InputError when no instruction computes in its type."""
    instructions = instructions_for(capabilities, warpgroup, attention.dtype)
    if not instructions:
        raise InputError(f"{name}: no matrix instruction of these GPUs computes in {attention.dtype}")
    decode = attention.queries == 1
    make = _decode if decode else _prefill
    candidates = tuple(candidate for instruction in instructions for candidate in make(attention, instruction))
    shape = (
        f"batch {attention.batch:g}, heads {attention.heads}/{attention.kv_heads} x {attention.head_dim}, "
        f"{attention.queries:g} x {attention.keys:g} {attention.dtype}"
    )
    return Operator(name, "attention_decode" if decode else "attention_prefill", candidates, repeats, phase, shape)


def _prefill(attention: Attention, instruction: MatrixInstruction) -> list[Candidate]:
    blocks = (
        [Block(128, 128, 8), Block(64, 128, 4)]
        if instruction.warpgroup
        else [Block(128, 64, 4), Block(64, 64, 4), Block(64, 32, 4)]
    )
    candidates = []
    for block in blocks:
        q_tiles = ceil(attention.queries / block.rows)
        units = attention.batch * attention.heads
        kernel = _kernel(
            attention, instruction, block, ctas=units * q_tiles, key_blocks=_mean_key_blocks(attention, block)
        )
        candidates.append(Candidate(f"{instruction.name} {block.rows}x{block.columns}", kernel))
    return candidates


def _mean_key_blocks(attention: Attention, block: Block) -> float:
    """Key blocks that a CTA visits, averaged over the tiles of queries.

    Causal CTAs skip the blocks above the diagonal and those that left the window.
    """
    if not attention.causal:
        return ceil(attention.keys / block.columns)
    tiles = ceil(attention.queries / block.rows)
    window = attention.window or attention.keys
    visited = 0
    for tile in range(tiles):
        last = attention.prefix + min(attention.queries, (tile + 1) * block.rows)
        first = max(0.0, attention.prefix + tile * block.rows + 1 - window)
        visited += ceil(last / block.columns) - int(first // block.columns)
    return visited / tiles


def _decode(attention: Attention, instruction: MatrixInstruction) -> list[Candidate]:
    """One token a request: the query heads that share keys are packed into one tile's rows."""
    rows = 64 if instruction.warpgroup else 16
    group = attention.heads / attention.kv_heads
    row_tiles = ceil(group / rows)
    units = attention.batch * attention.kv_heads * row_tiles
    block = Block(rows, 128 if instruction.warpgroup else 64, 4)
    blocks = ceil(attention.keys / block.columns)
    candidates = []
    for split in DECODE_SPLITS:
        if split > 1 and (split > blocks or units * split > MAX_DECODE_CTAS):
            break
        kernel = _kernel(attention, instruction, block, units * split, ceil(blocks / split), split)
        label = f"{instruction.name} {rows}x{block.columns}" + (f" split-kv {split}" if split > 1 else "")
        candidates.append(Candidate(label, kernel))
    return candidates


def _kernel(
    attention: Attention, instruction: MatrixInstruction, block: Block, ctas: float, key_blocks: float, split: int = 1
) -> Kernel:
    element = element_bytes(attention.dtype)
    partial_bytes = 0.0 if split == 1 else 4.0 * split * attention.q_bytes / element
    block_bytes = 2 * block.columns * attention.head_dim * element_bytes(attention.kv)
    decode = attention.queries == 1
    q_tile_bytes = block.rows * attention.head_dim * element
    return Kernel(
        start=Interval(repeats=1, instructions=60, int32=48, global_waits=2),  # queries, then the first keys
        loop=_loop(attention, instruction, block, key_blocks),
        end=_end(attention, block, split),
        ctas=ctas,
        warps=block.warps,
        registers=min(255.0, block.rows * (attention.head_dim + block.columns) / (32 * block.warps) + 48),
        # Warp-level kernels keep one block of keys and values (FlashAttention 2), warpgroup ones two (version 3).
        shared_kib=(q_tile_bytes + (2 if instruction.warpgroup else 1) * block_bytes) / KIB,
        launches=1 if split == 1 else 2,
        compute_capability=instruction.compute_capability,
        capability_end=instruction.capability_end,
        warpgroup=float(instruction.warpgroup),
        tensor_dtype=TENSOR_DTYPES.index(attention.dtype) if attention.dtype in TENSOR_DTYPES else 0,
        uses_tensor=float(attention.dtype != "fp32"),
        tensor_instruction_fma=instruction_fma(instruction, attention.dtype, block.columns),
        pipelined=1.0,
        cold_bytes=attention.kv_bytes,
        cold_distance=attention.kv_distance,
        warm_bytes=attention.q_bytes,
        warm_distance=attention.q_distance,
        write_bytes=attention.q_bytes + partial_bytes,
        write_distance=attention.out_distance,
        b_bytes=0.0 if decode else attention.kv_bytes,
        m_tiles=1 if decode else ctas / (attention.batch * attention.kv_heads),
        n_tiles=1 if decode else attention.batch * attention.kv_heads,
        tile_aspect=1e6,  # all CTAs that read the same keys run side by side before the next head
        reread_distance=attention.kv_bytes / (attention.batch * attention.kv_heads),
        l2_bytes=ctas * key_blocks * block_bytes + 2 * attention.q_bytes + 2 * partial_bytes,
        fma=attention.fma,
        fma_lanes=float(attention.dtype == "fp32"),
    )


def _loop(attention: Attention, instruction: MatrixInstruction, block: Block, key_blocks: float) -> Interval:
    """One block of keys: scores, softmax, and the product with the values."""
    element = element_bytes(attention.dtype)
    scores = block.rows * block.columns / (32 * block.warps)  # a lane's
    fma = 2 * block.rows * block.columns * attention.head_dim / block.warps
    load_bytes = 2 * block.columns * attention.head_dim * element_bytes(attention.kv) / block.warps
    widened = 0.0 if attention.kv == attention.dtype else 1.5 * load_bytes / element_bytes(attention.kv) / 32
    rescale = block.rows * attention.head_dim / (32 * block.warps)
    if instruction.warpgroup:
        matrix = fma / instruction_fma(instruction, attention.dtype, block.columns)
        # Queries stand in shared memory, weights of the values in registers: half of the products read rows from it.
        shared_bytes = matrix * (instruction.rows / 2 + block.columns) * 32.0 / 4.0
        fragments, copies = 0.0, 1.0
    else:
        matrix = fma / instruction.fma[attention.dtype]
        shared_bytes = 2 * block.columns * attention.head_dim * element / _key_warps(block) + load_bytes
        fragments, copies = shared_bytes / VECTOR_BYTES, load_bytes / VECTOR_BYTES
    alu = scores * SOFTMAX_ALU + rescale + widened
    sfu = scores * SOFTMAX_SFU
    cuda_core = attention.dtype == "fp32"
    return Interval(
        repeats=key_blocks,
        instructions=matrix + fragments + copies + alu + sfu + 10.0,
        fp32=alu + (matrix if cuda_core else 0.0),
        int32=8.0,
        sfu=sfu,
        tensor_fma=0.0 if cuda_core else fma,
        shared_bytes=shared_bytes,
        load_bytes=load_bytes,
        global_waits=1.0,
        shared_waits=0.0 if instruction.warpgroup else 2.0,
        alu_waits=6.0,
        sfu_waits=1.0,
        tensor_waits=0.0 if cuda_core else 2.0,  # scores before the softmax, weights before the values
    )


def _key_warps(block: Block) -> float:
    """Warps that stand side by side along the keys, each reading its share of them: 16 rows fill one warp."""
    return max(1.0, block.warps * 16 / block.rows)


def _end(attention: Attention, block: Block, split: int) -> Interval:
    elements = block.rows * attention.head_dim / (32 * block.warps)
    out_element = 4.0 if split > 1 else element_bytes(attention.dtype)
    return Interval(
        repeats=1,
        instructions=elements * 1.5 + elements * out_element / 8 + 20,
        fp32=elements,
        int32=16.0,
        sfu=1.0,
        shared_bytes=2 * elements * 32 * out_element,
        store_bytes=elements * 32 * out_element,
        shared_waits=1.0,
        sfu_waits=1.0,
    )
