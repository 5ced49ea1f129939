"""What a protocol times with a product in narrow types: passes over activations that come in 16 bits."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dse.base.package_tables import read_table
from dse.measured.protocol import Protocol
from dse.measured.row_shape import framework_of, notes_of
from dse.workload.dtypes import precisions
from dse.workload.implementation import implementation_index
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm_library import Library
from dse.workload.operators.narrow_products import nearest_release
from dse.workload.operators.vector import counts_of, vector_kernel, vector_ops

QUANTISE = "elementwise_quant_bf16_fp8"
QUANTISED = "fp8"
"""Data type of the products whose activations are quantised first."""


@dataclass(frozen=True)
class Pass:
    """A kernel over the activations: 1 where it reduces over a row, 1 where it writes them in 8 bits.

    ``launches`` [1] of the whole pass and how many times as long it takes (``stretch``), against static quantisation as
    it was measured.
    """

    reductions: int
    writes: int
    launches: float = 1.0
    stretch: float = 1.0

    def kernel(self, rows: float, columns: float) -> Kernel:
        """The kernel of static quantisation, as measured, with a reduction, or without results.

        By token, the row stays on the SM between the reduction and the scaling: it passes twice, but not from memory.
        """
        what = vector_ops()[QUANTISE]
        if (self.reductions, self.writes) != (what.reductions, what.writes):
            what = replace(what, reductions=float(self.reductions), writes=float(self.writes), number=0.0)
        both = self.reductions and self.writes
        counts = counts_of("quantise", QUANTISE)
        counts = replace(counts, passes=2.0, rereads=0.0) if both else counts
        touched = (2.0 + self.writes) * rows * columns
        index = implementation_index("quantise")
        kernel = vector_kernel(what, counts, rows, columns, (2.0, 1.0), (touched, touched, 0.0), index)
        return replace(kernel, launches=self.launches, stretch=self.stretch)


STATIC, BY_TOKEN, LARGEST = Pass(0, 1), Pass(1, 1), Pass(1, 0)


@dataclass(frozen=True)
class Way:
    """How activations are quantised: the kernels before the product, whether the product may split k, and in words what
    a row's time then holds beside it."""

    passes: tuple[Pass, ...] = ()
    splits: bool = True
    words: str = ""


BLOCKS_OF_16 = "block16"

_WAYS = {
    "": Way(),
    "static": Way((STATIC,), words="a pass over the activations that scales them"),
    "block": Way((STATIC,), words="a pass over the activations that scales them block by block"),
    BLOCKS_OF_16: Way((STATIC,), words="a pass over the activations that scales them sixteen by sixteen"),
    "token": Way((BY_TOKEN,), words="a pass that finds each token's largest value and scales by it"),
    "tensor": Way(
        (LARGEST, STATIC),
        splits=False,
        words="a pass that finds the activations' largest value, one that scales by it, and no split-K",
    ),
}
"""Name of a way -> what it does: nothing, by a known scale, by the largest value of each block, token or tensor."""


def _of_framework(way: Way, row: dict[str, str]) -> Way:
    """A way with the fitted cost of a framework's kernels: further launches go before the first pass."""
    stretch, launches = float(row["stretch"]), float(row["launches"])
    first, *others = (replace(one, stretch=stretch) for one in way.passes)
    return replace(way, passes=(replace(first, launches=launches), *others))


@cache
def ways() -> dict[str, Way]:
    """Return each way by name; "way, release, generation" is how the kernels of that release do it."""
    fitted = read_table("calibration/quantisation_passes.csv")
    of_releases = {f"{r['way']}, {r['release']}, {r['generation']}": _of_framework(_WAYS[r["way"]], r) for r in fitted}
    return _WAYS | of_releases


@cache
def releases() -> dict[tuple[str, str], list[str]]:
    """Return, for a way and a generation of matrix instructions, the releases whose kernels for it are known."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in read_table("calibration/quantisation_passes.csv"):
        found.setdefault((row["way"], row["generation"]), []).append(row["release"])
    return found


def quantises(row: Any, protocol: Protocol, generation: str = "") -> str:
    """Return how the protocol quantises the activations of a row, "" where it does not: a name of :func:`ways`.

    It is as the row's framework does it, where the kernels of a release of it are known.
    """
    way = _way(row, protocol)
    release, known = framework_of(notes_of(row)), releases().get((way, generation), ())
    if not (release and known and row.op == "gemm"):
        return way
    return f"{way}, {nearest_release(release, known)}, {generation}"


def _way(row: Any, protocol: Protocol) -> str:
    if row.op not in ("gemm", "bmm"):
        return ""
    if str(getattr(row, "act_quant", "")).startswith("inside") or (row.op == "bmm" and protocol.quantises):
        return _said(row)
    return protocol.quantises if row.op == "gemm" and row.dtype == QUANTISED else ""


def _said(row: Any) -> str:
    """How activations are quantised by what a row states beside its type, of fp8 by its library: TensorRT-LLM by
    tensor, others by token."""
    if row.dtype in precisions():
        return precisions()[row.dtype].quantises
    if row.dtype == "nvfp4":
        return BLOCKS_OF_16
    if row.dtype != QUANTISED or "dequant" in notes_of(row):
        return ""
    return "tensor" if row.op == "gemm" and "trtllm" in notes_of(row) else "token"


def library_for(quantising: str, library: Library) -> Library:
    """Return the library of the product, without its splits where the way of quantising allows none."""
    return library if ways()[quantising].splits else replace(library, splits=(1,), warpgroup_splits=())
