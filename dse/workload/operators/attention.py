"""Attention as kernels: FlashAttention-like prefill, and decode with the keys split over CTAs."""

from dataclasses import dataclass, replace
from math import ceil

from dse.base.constants import constant
from dse.base.units import KIB
from dse.hardware.data_types import BITS, TENSOR_DTYPES, element_bytes
from dse.workload.implementation import KINDS, implementation_index
from dse.workload.kernel import PROBLEM, Interval, Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.attended import Attention
from dse.workload.operators.attention_library import (
    DEFAULTS,
    AttentionLibrary,
    Block,
    Kernels,
    attention_libraries,
    kernels_with,
    latent_library,
)
from dse.workload.operators.gemm_main_loop import VECTOR_BYTES
from dse.workload.operators.matrix_instructions import (
    MatrixInstruction,
    NoInstructionError,
    instruction_fma,
    instructions_for,
)
from dse.workload.operators.visited_keys import Lengths, key_blocks

SOFTMAX_ALU = constant("softmax_alu_instructions")
"""ALU instructions a score: scale, maximum, subtract, sum, convert (measured attention: 1/16 MUFU + 5/lanes cycles)."""

SOFTMAX_SFU = constant("softmax_sfu_instructions")
"""Exponentials a score."""

SOFTCAP_ALU, SOFTCAP_SFU = constant("softcap_alu_instructions"), constant("softcap_sfu_instructions")
"""What a cap of the scores adds to each: two scalings and a tanh."""

CACHE_THREADS, CACHE_SMALL = int(constant("cache_write_threads")), constant("cache_write_size_power")
"""Threads of a CTA that writes a token into the cache at most (vLLM, csrc/cache_kernels.cu: a thread an element), and
by which power of its size a smaller one costs its SM less (measured A100 and H100 rows: 1.5, 4.5, 10.5 and 10.8 ns a
token at 128, 256, 512 and 1024 elements)."""

SPLITS = (1, 2, 4, 8, 16, 32, 64)
FINE_SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
"""Splits of the keys: those that sweeps of designs try, and those that measured rows are predicted with. The fastest
runs; libraries' own rules, smallest split of 85 % wave efficiency, came out no closer (experiments/013_attention)."""

SMALL = (Block(64, 32, 4), Block(16, 64, 4))
"""Tiles of a prefill and of a decode where shared memory is short (Turing; assumed)."""

MAX_DECODE_CTAS = 4096


def attention_operator(
    name: str,
    attention: Attention,
    capabilities: tuple[float, float] | None = None,
    warpgroup: bool = True,
    phase: str = "kernel",
    repeats: float = 1.0,
    library: AttentionLibrary | None = None,
    elsewhere: bool = False,
) -> Operator:
    """Return the operator of an attention layer; raises NoInstructionError when none computes in its type.

    ``library`` whose kernels run; None: FlashAttention 3 where a GPU has warpgroup instructions, version 2 elsewhere.
    With ``elsewhere`` these run, too, on GPUs where the library has no kernel that does.
    """
    instructions = of_any = instructions_for(capabilities, warpgroup, attention.dtype)
    if attention.of_latent and library is not None and not library.latent:
        library = None
    if library is not None and library.instructions != "any":
        instructions = [i for i in instructions if i.warpgroup == (library.instructions == "warpgroup")]
    elif library is not None:
        instructions = [i for i in instructions if i.warpgroup] or instructions
    if elsewhere and not instructions:
        instructions, library = of_any, None
    if not instructions:
        raise NoInstructionError(name, attention.dtype, library.title if library else "")
    splits = SPLITS if library is None else FINE_SPLITS
    runs = [
        _Run(attention, kernels.instruction, kernels.library, FINE_SPLITS if kernels.succeeds else splits)
        for i in instructions
        for kernels in _kernels(attention, i, library, capabilities)
    ]
    if library is not None and elsewhere and not attention.of_latent and all(i.warpgroup for i in instructions):
        older = attention_libraries()[DEFAULTS[False]]
        runs += [_Run(attention, i, older, SPLITS) for i in of_any if not i.warpgroup]
    if attention.latent:  # where tensor cores have no type as narrow as the cache, it is widened
        runs += [replace(run, widens=True) for run in runs if run.computed.dtype != attention.dtype]
    candidates = [candidate for run in runs for candidate in run.candidates()]
    if library is None or elsewhere or attention.latent:
        candidates = _on_any_gpu(runs, candidates)
    values = "" if attention.value_dim == attention.head_dim else f"/{attention.value_dim}"
    shape = (
        f"batch {attention.batch:g}, heads {attention.heads}/{attention.kv_heads} x {attention.head_dim}{values}, "
        f"{attention.queries:g} x {attention.keys:g} {attention.dtype}"
    )
    kind = "attention_decode" if attention.queries == 1 else "attention_prefill"
    operands = frozenset({attention.dtype, attention.kv})
    return Operator(name, kind, tuple(candidates), repeats, phase, shape, operands)


def _library_on(
    attention: Attention, instruction: MatrixInstruction, library: AttentionLibrary | None
) -> AttentionLibrary:
    """The library whose kernels run with an instruction."""
    if attention.of_latent:
        return latent_library(instruction.name, library, attention.latent)
    return library or attention_libraries()[DEFAULTS[instruction.warpgroup]]


def _kernels(
    attention: Attention,
    instruction: MatrixInstruction,
    library: AttentionLibrary | None,
    capabilities: tuple[float, float] | None,
) -> list[Kernels]:
    """What runs with an instruction; records of a library's successors are of causal attention alone."""
    ran = _library_on(attention, instruction, library)
    return kernels_with(instruction, ran, capabilities) if attention.causal else [Kernels(instruction, ran)]


def _on_any_gpu(runs: list["_Run"], candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, each where no better one runs: kernels with warpgroup instructions, then warp-level ones, then
    small tiles where shared memory is short."""
    newest = max((_generated(c).shared_kib for c in candidates if _generated(c).warpgroup), default=0.0)
    older = [c for c in candidates if not _generated(c).warpgroup]
    needs = max((_generated(c).shared_kib for c in older), default=0.0)
    small = [c for run in runs if not run.instruction.warpgroup for c in run.candidates(small=True)]
    small = [_with(c, unless_kib=needs) for c in small if _generated(c).shared_kib < needs]
    last = [_with(c, unless_warpgroup_kib=newest) for c in older + small]
    return [c for c in candidates if _generated(c).warpgroup] + last


def _generated(candidate: Candidate) -> Kernel:
    assert isinstance(candidate.kernel, Kernel)  # attention is generated, never recorded
    return candidate.kernel


def _with(candidate: Candidate, **changes: float) -> Candidate:
    return replace(candidate, kernel=replace(_generated(candidate), **changes))


@dataclass(frozen=True)
class _Run:
    """A library's attention with one instruction; ``widens`` a narrow cache, whatever the library does else."""

    attention: Attention
    instruction: MatrixInstruction
    library: AttentionLibrary
    splits: tuple[int, ...]
    widens: bool = False

    @property
    def computed(self) -> Attention:
        """What is computed: in the type of a narrow cache, where the library narrows its queries, too."""
        a, phase = self.attention, "decode" if self.decodes else "prefill"
        narrows = a.narrow and phase in self.library.narrows and self.instruction.supports(a.kv) and not self.widens
        return replace(a, dtype=a.kv) if narrows else a

    @property
    def decodes(self) -> bool:
        """Whether the decode kernel runs: of queries that share no keys each is as the one of a decode."""
        one = self.attention.queries == 1 and (self.attention.decoding or self.library.one_token_decodes)
        return (one or self.attention.gathered > 0) and self.library.decodes

    @property
    def group(self) -> float:
        """Query heads that share keys."""
        return self.attention.heads / self.attention.kv_heads

    @property
    def unpacked(self) -> bool:
        """Whether a window keeps the decode kernel from packing query heads into a tile, and from splitting keys."""
        return self.decodes and self.attention.window > 0 and not self.library.packs_windows

    def candidates(self, small: bool = False) -> list[Candidate]:
        """The kernels that could run, with the library's tiles or with ``small`` ones."""
        phase = "prefill"
        if self.decodes:  # heads that share a latent always fill a tile together
            phase = "decode" if self.attention.latent else self.library.decode_phase(self.group)
        block = SMALL[self.decodes] if small else self.library.block(phase, self.attention.head_dim)
        return self._decode(phase, block) if self.decodes else self._prefill(block)

    def _prefill(self, block: Block) -> list[Candidate]:
        """Tiles of queries, of a group's heads together where the library packs them."""
        a, group = self.attention, self.group if self.library.packs else 1.0
        narrow = BITS[self.computed.dtype] < 16
        step = self.library.step(a.head_dim, narrow) if self.instruction.warpgroup else None
        visited = key_blocks(a, self.library, block, group, step)
        units = a.batch * a.heads / group * len(visited)
        candidates = []
        for split in self._splits(units, visited.max()) if self.library.splits_prefill else (1,):
            lengths = Lengths(*(ceil(x / split) if split > 1 else x for x in (visited.mean(), visited.max())))
            candidates.append(self._candidate("prefill", block, units, lengths, split))
        return candidates

    def _decode(self, kernel: str, block: Block) -> list[Candidate]:
        """One token a request: the query heads that share keys fill one tile's rows, their keys are split over CTAs."""
        a = self.attention
        packed = kernel == "decode" and not self.unpacked
        row_tiles = ceil(self.group / block.rows) if packed else self.group
        units = a.batch * a.kv_heads * row_tiles * (a.queries if a.gathered else 1.0)
        blocks = ceil((a.gathered or a.keys) / block.columns)
        may_split = not self.unpacked and (self.group > 1 or self.library.splits_single)
        splits = self._splits(units, blocks) if may_split else (1,)
        return [
            self._candidate(kernel, block, units, Lengths(ceil(blocks / split), ceil(blocks / split)), split)
            for split in splits
        ]

    def _splits(self, units: float, blocks: float) -> list[int]:
        """Splits of the keys worth trying, each with another number of blocks a CTA."""
        counts, most = [1], min(blocks, self.library.most_splits or blocks, MAX_DECODE_CTAS / units)
        for split in self.splits[1:]:
            if blocks < self.library.least_blocks or split > most:
                break
            if ceil(blocks / split) < ceil(blocks / counts[-1]):
                counts.append(split)
        return counts

    def _implementation(self, phase: str) -> str:
        """The kernels' implementation: one of its own for narrow products or a narrow cache, where its costs are
        known."""
        name, narrow = self.library.name, BITS[self.attention.dtype] < 16
        kinds = ("fp8", "narrow") if narrow else ("narrow",) if self.attention.narrow else ()
        known = (f"{name}_{kind}_{phase}" for kind in kinds)
        return next((one for one in known if one in KINDS), f"{name}_{phase}")

    def _candidate(self, phase: str, block: Block, units: float, lengths: Lengths, split: int) -> Candidate:
        kernel = _kernel(self, block, units * split, lengths, split, self._implementation(phase))
        label = f"{self.library.name} {self.instruction.name} {block.rows}x{block.columns}"
        return Candidate(label + (f" split-kv {split}" if split > 1 else ""), kernel)


def _copies(run: _Run) -> dict[str, float]:
    """Kernels that copy operands, their bytes and rows: the new keys and values into the cache, queries and results
    into groups of heads and back."""
    a, copies, moved, rows = run.attention, 0.0, 0.0, 0.0
    if run.computed.dtype != a.dtype:  # queries are narrowed
        copies += 1.0
        moved += (1.0 + element_bytes(a.kv) / element_bytes(a.dtype)) * a.q_bytes
    if a.writes_cache:
        copies += 1.0
        written = a.written_dim or a.kv_heads * a.head_dim
        rows += a.batch * a.queries * min(1.0, written / CACHE_THREADS) ** CACHE_SMALL
        moved += a.written_bytes + (2.0 * a.q_bytes if a.of_latent else 0.0)  # its queries are rotated, too
    if a.narrow and a.of_latent and not a.latent:  # queries, and the keys and values that were just made, are narrowed
        copies += 1.0
        moved += (1.0 + element_bytes(a.kv) / element_bytes(a.dtype)) * a.q_bytes
        moved += (1.0 + element_bytes(a.dtype) / element_bytes(a.kv)) * a.kv_bytes
    swaps = run.decodes and run.library.swaps and not run.unpacked
    if swaps and run.group > 1 and a.batch > 1 and a.kv_heads > 1:
        copies += 2.0
        moved += 2.0 * (a.q_bytes + a.out_bytes)
    return {"copies": copies, "copied_bytes": moved, "copied_rows": rows}


def _problem(run: _Run, implementation: str) -> tuple[float, ...]:
    """Its size where it is plain and of the types that its implementation's rows have: 16 bits, or narrow ones."""
    a, library = run.attention, run.library
    wide = a.dtype == a.kv and BITS[a.dtype] == 16
    narrow = "_narrow_" in implementation or "_fp8_" in implementation
    keys = a.keys
    if a.window and a.queries > 1 and library.windows_known:  # as many as leave a query as many to see
        keys = min(keys, 2.0 * a.visible)
    windowed = a.window and not library.windows_known
    plain = not (windowed or a.chunk or a.softcap or a.gathered) and (wide or narrow) and a.cached_dim == 2 * a.head_dim
    together = 1.0 if run.unpacked else run.group
    return (a.batch * a.heads, a.queries, keys, a.head_dim, together) if plain else (0.0,) * PROBLEM


def _kernel(run: _Run, block: Block, ctas: float, lengths: Lengths, split: int, implementation: str) -> Kernel:
    attention, instruction, key_blocks = run.computed, run.instruction, lengths.mean
    element = element_bytes(attention.dtype)
    partial_bytes = 0.0 if split == 1 else 4.0 * split * attention.out_bytes / element_bytes(attention.result)
    block_bytes = block.columns * attention.cached_dim * element_bytes(attention.kv)
    decode, both = run.decodes, (attention.head_dim, attention.value_dim)
    dims = sum(both) if decode or attention.latent else sum(map(run.library.filled, both))
    q_tile_bytes = block.rows * attention.head_dim * element
    held = min(1.0, block.head_slice / attention.head_dim) if block.head_slice else 1.0
    return Kernel(
        start=Interval(repeats=1, instructions=60, int32=48, global_waits=2),  # queries, then the first keys
        loop=_loop(attention, instruction, block, key_blocks, dims),
        end=_end(attention, block, split, attention.batch * attention.heads * attention.queries * split / ctas),
        ctas=ctas,
        warps=block.warps,
        registers=min(255.0, block.rows * (attention.value_dim + block.columns) / (32 * block.warps) + 48),
        # Warp-level kernels keep one block of keys and values (FlashAttention 2), warpgroup ones two (version 3).
        shared_kib=held * (q_tile_bytes + (2 if instruction.warpgroup else 1) * block_bytes) / KIB,
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
        warm_bytes=attention.q_bytes + attention.sink_bytes,
        warm_distance=attention.q_distance,
        write_bytes=attention.out_bytes + partial_bytes,
        result_bytes=attention.out_bytes,
        write_distance=attention.out_distance,
        b_bytes=0.0 if decode else attention.kv_bytes,
        m_tiles=1 if decode else ctas / (attention.batch * attention.kv_heads),
        n_tiles=1 if decode else attention.batch * attention.kv_heads,
        tile_aspect=1e6,  # all CTAs that read the same keys run side by side before the next head
        reread_distance=attention.kv_bytes / (attention.batch * attention.kv_heads),
        l2_bytes=ctas * key_blocks * block_bytes + attention.q_bytes + attention.out_bytes + 2 * partial_bytes,
        fma=attention.fma,
        fma_lanes=float(attention.dtype == "fp32"),
        masked_fma=attention.masked_fma(split * key_blocks * block.columns),
        implementation=implementation_index(implementation),
        longest=lengths.ratio,
        longest_first=float(run.library.longest_first),
        problem=_problem(run, implementation),
        **_copies(run),
    )


def _loop(attention: Attention, instruction: MatrixInstruction, block: Block, key_blocks: float, dims: int) -> Interval:
    """One block of keys: scores, softmax, and the product with the values; ``dims`` [element] of a key and a value that
    are multiplied."""
    element = element_bytes(attention.dtype)
    scores = block.rows * block.columns / (32 * block.warps)  # a lane's
    fma = block.rows * block.columns * dims / block.warps
    # Whole bytes, so that counts of misses are the same in 32 and 64 bits.
    load_bytes = float(ceil(block.columns * attention.cached_dim * element_bytes(attention.kv) / block.warps))
    narrow = BITS[attention.kv] < BITS[attention.dtype]
    widened = 0.0 if not narrow else 1.5 * load_bytes / element_bytes(attention.kv) / 32
    rescale = block.rows * attention.value_dim / (32 * block.warps)
    if instruction.warpgroup:
        matrix = fma / instruction_fma(instruction, attention.dtype, block.columns)
        # Queries stand in shared memory, weights of the values in registers: half of the products read rows from it.
        shared_bytes = matrix * (instruction.rows / 2 + block.columns) * 32.0 / 4.0
        fragments, copies = 0.0, 1.0
    else:
        matrix = fma / instruction.fma[attention.dtype]
        shared_bytes = block.columns * dims * element / _key_warps(block) + load_bytes
        fragments, copies = shared_bytes / VECTOR_BYTES, load_bytes / VECTOR_BYTES
    alu = scores * (SOFTMAX_ALU + SOFTCAP_ALU * attention.softcap) + rescale + widened
    sfu = scores * (SOFTMAX_SFU + SOFTCAP_SFU * attention.softcap)
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


def _end(attention: Attention, block: Block, split: int, rows: float) -> Interval:
    """Scale and store the ``rows`` of a CTA's tile that hold a query (their mean)."""
    elements = rows * attention.value_dim / (32 * block.warps)
    out_element = 4.0 if split > 1 else element_bytes(attention.result)
    return Interval(
        repeats=1,
        instructions=elements * 1.5 + elements * out_element / 8 + 20,
        fp32=elements,
        int32=16.0,
        sfu=1.0 + attention.sinks,
        shared_bytes=2 * elements * 32 * out_element,
        store_bytes=elements * 32 * out_element,
        shared_waits=1.0,
        sfu_waits=1.0,
    )
