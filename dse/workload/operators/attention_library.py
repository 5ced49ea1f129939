"""Attention libraries: which tiles, packing, order and splits their kernels have, apart from the GPU."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.hardware.capability import ANY_NEWER
from dse.workload.operators.matrix_instructions import MatrixInstruction
from dse.workload.operators.narrow_products import nearest_release

PLAIN, LATENT, OF_ENCODER = "attention", "latent", "encoder"
"""Kinds of attention: with keys and values of their own; over a latent (DeepSeek-V2) or made of one; of encoders."""

RELEASE = re.compile(r"(?:vllm|sglang|trtllm)-[\d.]+(?:rc\d+)?")
"""A release of a framework in the notes of a row."""

LATENT_PREFILL, LATENT_DECODE = "latent_prefill", "latent_decode"
"""Kinds of latent attention: of prompts, and of one token."""

DEFAULTS = ("fa2", "fa3")
"""What engines run where nothing is said: with warp-level instructions, and with warpgroup instructions."""

TILES_OF = "tiles_of"
"""Column of libraries.csv: another library whose tiles it has, "" where it has its own."""

BLACKWELL = "tcgen05"
"""Matrix instruction of Blackwell's data-centre parts."""

DEFAULT_LATENT = {BLACKWELL: "trtllm_gen_mla", "wgmma": "trtllm_mla"}
"""Matrix instruction -> library of latent attention, where nothing is said or a library has no such kernels."""

ANY_LATENT = ("trtllm_warp_mla", "sglang")
"""The same of all other instructions: over keys and values made of a latent, and over the latent itself (in Triton)."""

XQA_GROUPS = int(constant("xqa_group_heads"))
"""Query heads of a group that TensorRT-LLM's packed decode kernel takes at most (docs/model/operators.md 4.2)."""


@dataclass(frozen=True)
class Block:
    """A CTA's work: ``rows`` of queries against ``columns`` keys at a time, on ``warps`` warps; ``head_slice`` elements
    of a head lie in shared memory at a time (None: the whole head)."""

    rows: int
    columns: int
    warps: int
    head_slice: int | None = None


@dataclass(frozen=True)
class AttentionLibrary:
    """What a library's attention kernels do.

    ``instructions``: "warp", "warpgroup" or "any" (the newest). ``packs``: the query heads of a group fill one tile of
    a prefill. ``longest_first``: CTAs are handed out longest first. ``skips`` blocks that a causal mask removes.
    ``splits_single``: splits the keys of heads that share none, too. ``swaps``: copies queries and results of a decode
    into groups and back. ``one_token_decodes``: a prefill of one token runs the decode kernel. ``splits_prefill``:
    prefills split their keys too. ``latent``: its kernels are those of latent attention. ``skips_windows``: prefills
    skip the blocks of keys that left the window. ``head_alone``: heads that share no keys have a CTA each.
    ``windows_known``: it was measured with windows, too. ``packs_windows``: decodes with a window are as those without,
    else each query head has a CTA for all its keys (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp,
    mha_varlen_fwd: seqlenq_ngroups_swapped). ``narrows``: phases whose queries are narrowed to the type of a narrow
    cache. ``least_blocks`` of keys for a split, and the ``most_splits`` of a decode (None: as many as pay). ``tiles``:
    (phase, head size) -> Block, phases prefill, decode and decode_head (a CTA a query head). ``head_sizes`` that its
    kernels of prompts are built for: others are filled up with zeros (none: of any size). ``steps``: of warpgroup
    kernels of prompts, (in narrow types or not, head size) -> the block that a mask lets them skip, if no tile.
    """

    name: str
    title: str
    instructions: str
    packs: bool
    longest_first: bool
    skips: bool
    splits_single: bool
    swaps: bool
    one_token_decodes: bool
    splits_prefill: bool
    latent: bool
    skips_windows: bool
    head_alone: bool
    windows_known: bool
    packs_windows: bool
    least_blocks: int
    most_splits: int | None
    narrows: tuple[str, ...]
    tiles: dict[tuple[str, int], Block]
    head_sizes: tuple[int, ...] = ()
    steps: Mapping[tuple[bool, int], Block] = field(default_factory=dict)

    def filled(self, head_dim: int) -> int:
        """Return the elements that a kernel of prompts multiplies of a head: those of the next size it is built for."""
        return next((size for size in self.head_sizes if size >= head_dim), head_dim)

    def block(self, phase: str, head_dim: int) -> Block:
        """Return the tile for a head size: that of the next size in the table, else of the largest."""
        sizes = sorted(size for p, size in self.tiles if p == phase)
        return self.tiles[phase, next((size for size in sizes if size >= head_dim), sizes[-1])]

    def step(self, head_dim: int, narrow: bool) -> Block | None:
        """Return what prompts' kernels skip as a whole where a mask removes it (None: a tile's own block), by head size
        and whether they multiply in ``narrow`` types: that of the next size in the table, else of the largest."""
        sizes = sorted(size for in_narrow, size in self.steps if in_narrow == narrow)
        return self.steps[narrow, next((s for s in sizes if s >= head_dim), sizes[-1])] if sizes else None

    @property
    def decodes(self) -> bool:
        """Whether it has a kernel for one query a request: else that of prompts runs those, too."""
        return any(phase.startswith("decode") for phase, _ in self.tiles)

    def decode_phase(self, group: float) -> str:
        """Return the kernel that decodes ``group`` query heads a key-value head."""
        has_both = any(phase == "decode_head" for phase, _ in self.tiles)
        packed = (1 if self.head_alone else 0) < group <= XQA_GROUPS
        return "decode_head" if has_both and not packed else "decode"


@cache
def attention_libraries() -> dict[str, AttentionLibrary]:
    """Return the known libraries by name."""
    tiles: dict[str, dict[tuple[str, int], Block]] = {}
    for row in read_table("attention/tiles.csv"):
        held = int(row["head_slice"]) if row["head_slice"] else None
        block = Block(int(row["rows"]), int(row["columns"]), int(row["warps"]), held)
        tiles.setdefault(row["library"], {})[row["phase"], int(row["head_dim"])] = block
    steps: dict[str, dict[tuple[bool, int], Block]] = {}
    for row in read_table("attention/steps.csv"):
        block = Block(int(row["rows"]), int(row["columns"]), warps=0)
        steps.setdefault(row["library"], {})[row["narrow"] == "1", int(row["head_dim"])] = block
    flags = (
        "packs", "longest_first", "skips", "splits_single", "swaps", "one_token_decodes", "splits_prefill",
        "latent", "skips_windows", "head_alone", "windows_known", "packs_windows",
    )  # fmt: skip
    return {
        row["library"]: AttentionLibrary(
            row["library"],
            row["title"],
            row["instructions"],
            **{f: row[f] == "1" for f in flags},
            least_blocks=int(row["least_blocks"]),
            most_splits=int(row["most_splits"]) if row["most_splits"] else None,
            narrows=tuple(row["narrows"].split(";")),
            tiles=tiles[row[TILES_OF] or row["library"]],
            head_sizes=tuple(map(int, filter(None, row["head_sizes"].split(";")))),
            steps=steps.get(row["library"], {}),
        )
        for row in read_table("attention/libraries.csv")
    }


@dataclass(frozen=True)
class Successor:
    """What runs in place of a library's kernels with an ``instruction``, on GPUs of a range of compute capability."""

    instruction: str
    compute_capability: float
    capability_end: float
    library: str


@cache
def successors() -> dict[str, tuple[Successor, ...]]:
    """Return library -> what runs in its place on GPUs on which it has other kernels."""
    found: dict[str, tuple[Successor, ...]] = {}
    for row in read_table("attention/successors.csv"):
        ends = float(row["compute_capability"]), float(row["capability_end"])
        other = Successor(row["instruction"], *ends, row["runs"])
        found[row["library"]] = (*found.get(row["library"], ()), other)
    return found


class Kernels(NamedTuple):
    """A library's kernels with an instruction, on the GPUs that the instruction says; ``succeeds``: in another's
    place."""

    instruction: MatrixInstruction
    library: AttentionLibrary
    succeeds: bool = False


def kernels_with(
    instruction: MatrixInstruction, library: AttentionLibrary, capabilities: tuple[float, float] | None
) -> list[Kernels]:
    """Return what runs with an instruction on GPUs of these compute capabilities (None: any): a library's kernels, and
    where others took their place, those."""
    low, high = capabilities or (0.0, ANY_NEWER)
    found, since = [], instruction.compute_capability
    for other in successors().get(library.name, ()):  # in the order of their capabilities
        if other.instruction != instruction.name:
            continue
        older = replace(instruction, compute_capability=since, capability_end=other.compute_capability)
        since = min(other.capability_end, instruction.capability_end)
        newer = replace(instruction, compute_capability=other.compute_capability, capability_end=since)
        found += [Kernels(older, library), Kernels(newer, attention_libraries()[other.library], True)]
    found.append(Kernels(replace(instruction, compute_capability=since), library))
    return [k for k in found if _overlaps(k.instruction, low, high)]


def _overlaps(instruction: MatrixInstruction, low: float, high: float) -> bool:
    """Whether an instruction exists on GPUs of a range of compute capability, and on any at all."""
    start, end = instruction.compute_capability, instruction.capability_end
    return start < end and start <= high and end > low


def latent_library(instruction: str, library: AttentionLibrary | None, absorbed: bool) -> AttentionLibrary:
    """Return the library whose latent attention runs with a matrix ``instruction``: ``library`` where its kernels are
    of that kind, but on Blackwell, where all run one library's. ``absorbed``: over the latent itself."""
    if library is not None and library.latent and instruction != BLACKWELL:
        return library
    return attention_libraries()[DEFAULT_LATENT.get(instruction, ANY_LATENT[absorbed])]


def library_of(
    notes: str, source: str, warpgroup: bool, kinds: Collection[str] = (PLAIN,), device: str = ""
) -> AttentionLibrary:
    """Return the library that a measured row ran, by the first row of ``attention/measured.csv`` whose words all stand
    in its notes and whose source is its own; raises InputError where that is known to have no model. ``kinds`` of
    attention that the row is, of PLAIN and those that :func:`latent_kinds` and :func:`window_kind` give; ``device``:
    name of its GPU. Where the same words have several releases, the nearest serves (:func:`nearest_release`)."""
    row = _named_row(notes, source, warpgroup, kinds, device)
    if row is not None and not row["library"]:
        raise InputError(row["why_not"])
    if row is None and LATENT in kinds:
        return latent_library("wgmma" if warpgroup else "", None, LATENT_DECODE in kinds)
    return attention_libraries()[row["library"] if row else DEFAULTS[warpgroup]]


def window_kind(window: float, decodes: bool) -> tuple[str, ...]:
    """Return what kinds of attention a row is by its phase and its ``window`` (0: none)."""
    phase = "decode" if decodes else "prefill"
    return (phase, f"window_{window:g}_{phase}") if window else (phase,)


def latent_kinds(decodes: bool, narrow: bool) -> tuple[str, ...]:
    """Return what kinds of attention a row of latent attention is: of one token or not, with a cache in ``narrow``
    types or not."""
    if not decodes:
        return LATENT, LATENT_PREFILL
    return LATENT, LATENT_DECODE, f"{LATENT}_{'narrow' if narrow else 'wide'}_decode"


def names_library(notes: str, source: str, warpgroup: bool) -> bool:
    """Whether anything tells the library of a measured row, so that :func:`library_of` need not assume one."""
    return _named_row(notes, source, warpgroup) is not None


def _named_row(
    notes: str, source: str, warpgroup: bool, kinds: Collection[str] = (PLAIN,), device: str = ""
) -> dict[str, str] | None:
    on = ("", "1" if warpgroup else "0")
    found = [
        row
        for row in read_table("attention/measured.csv")
        if all(word in notes for word in row["words"].split(";"))
        and row["measured_by"] in ("", source)
        and row["warpgroup"] in on
        and row["kind"] in ("", *kinds)
        and device.startswith(row["device"])
    ]
    if not found:
        return None
    same = {row["release"]: row for row in reversed(found) if _heads(row) == _heads(found[0])}
    return same[nearest_release(_release_of(notes), list(same))]


def _heads(row: dict[str, str]) -> tuple[str, ...]:
    """What rows of several releases share."""
    return tuple(row[key] for key in ("words", "measured_by", "warpgroup", "kind", "device"))


def _release_of(notes: str) -> str:
    """The release that the notes of a row name, "" where they name none."""
    named = RELEASE.search(notes)
    return named[0] if named else ""
