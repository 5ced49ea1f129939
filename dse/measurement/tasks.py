"""The operators to measure: products, attention, vector kernels and streams, at the shapes of LLM inference."""

from dataclasses import dataclass, field
from itertools import product
from zlib import crc32

from dse.base.errors import InputError, accepted
from dse.workload.microbenchmarks import CHASE, GRID, LINE, LOOPS

KINDS = ("gemm", "attention", "vector", "stream", "latency", "launch", "power")
"""What ``--only`` may name."""

VECTOR_OPERATORS = ("add", "mul", "gelu", "silu_and_mul", "rmsnorm", "add_rmsnorm", "layernorm", "softmax")


@dataclass(frozen=True)
class Task:
    """One operator at one shape: ``op`` and ``dtype`` as a measured table names them, ``shape`` by its columns."""

    kind: str
    op: str
    dtype: str
    shape: dict[str, int] = field(hash=False)

    def words(self) -> str:
        """Return the task as a line of a list."""
        return " ".join([self.op, self.dtype, *(f"{name}={value}" for name, value in self.shape.items())])


def tasks(quick: bool = False, only: str = "") -> list[Task]:
    """Return the operators to measure, shuffled so that every beginning is a fair sample; raises InputError.

    ``quick``: a coarse grid of small shapes; ``only``: names of KINDS, by comma.
    """
    kinds = [name.strip() for name in only.split(",") if name.strip()] or list(KINDS)
    for name in kinds:
        if name not in KINDS:
            raise InputError(f"--only: nothing that is measured is called {name!r}; {accepted(name, KINDS)}")
    grids = {
        "gemm": gemms,
        "attention": attentions,
        "vector": vectors,
        "stream": streams,
        "latency": chases,
        "launch": empty_grids,
        "power": unit_loops,
    }
    every = [task for name in dict.fromkeys(kinds) for task in grids[name](quick)]
    return sorted(every, key=lambda task: crc32(task.words().encode()))


def gemms(quick: bool) -> list[Task]:
    """Products [m, k] x [k, n]: tokens in steps of two to four, the weights of common layers and powers of two."""
    tokens = (1, 64, 1024) if quick else (1, 4, 16, 64, 128, 200, 256, 512, 1024, 2048, 4096, 8192)
    weights = ((1024, 1024), (4096, 4096)) if quick else (
        (1024, 1024), (2048, 2048), (4096, 4096), (8192, 8192), (6144, 4096), (4096, 14336), (28672, 4096),
        (10240, 8192), (8192, 28672), (1280, 8192), (8192, 1024), (3072, 768),
    )  # fmt: skip
    types = ("bf16",) if quick else ("bf16", "fp16")
    return [Task("gemm", "gemm", t, {"m": m, "n": n, "k": k}) for t, m, (n, k) in product(types, tokens, weights)]


def attentions(quick: bool) -> list[Task]:
    """Causal prefill of whole prompts, and decode of one token a request; heads of 64 and 128, grouped and not."""
    heads = ((32, 8, 128),) if quick else ((32, 8, 128), (32, 32, 128), (64, 8, 128), (16, 16, 64))
    prefill = ((1, 1024),) if quick else ((1, 256), (1, 1024), (1, 4096), (1, 16384), (8, 512), (8, 2048), (32, 256))
    decode = ((8, 1024),) if quick else ((1, 1024), (1, 16384), (8, 512), (8, 4096), (32, 2048), (128, 1024))
    attention = []
    for h, kv, d in heads:
        sizes = {"heads": h, "kv_heads": kv, "head_dim": d}
        attention += [
            Task("attention", "attn_prefill", "bf16", {"batch": b, **sizes, "seq_q": s, "seq_kv": s, "causal": 1})
            for b, s in prefill
        ]
        attention += [
            Task("attention", "attn_decode", "bf16", {"batch": b, **sizes, "seq_q": 1, "seq_kv": s, "causal": 1})
            for b, s in decode
        ]
    return attention


def vectors(quick: bool) -> list[Task]:
    """Element-wise operators and norms on rows x cols."""
    rows = (64, 4096) if quick else (1, 16, 128, 512, 2048, 8192, 32768)
    cols = (4096,) if quick else (1024, 4096, 8192, 14336)
    types = ("bf16",) if quick else ("bf16", "fp32")
    every = product(VECTOR_OPERATORS, types, rows, cols)
    return [Task("vector", op, t, {"rows": r, "cols": c}) for op, t, r, c in every]


def streams(quick: bool) -> list[Task]:
    """One read and one write an element, from what the L2 holds to a GB."""
    powers = (20, 26) if quick else range(18, 31)
    return [Task("stream", "copy", "fp32", {"rows": 2**power // 4096, "cols": 1024}) for power in powers]


def chases(quick: bool) -> list[Task]:
    """Rings of lines from 8 KiB, which every L1 holds, to 256 MiB, which no L2 does."""
    powers = (15, 22, 27) if quick else range(13, 29)
    return [Task("latency", CHASE, "int32", {"rows": 2**power // (4 * LINE), "cols": LINE}) for power in powers]


def empty_grids(quick: bool) -> list[Task]:
    """Grids of empty CTAs by their number and by their threads."""
    ctas = (132, 4096) if quick else (1, 132, 1024, 4096, 16384, 65536)
    threads = (64, 256, 1024) if quick else (32, 64, 128, 256, 512, 1024)
    return [Task("launch", GRID, "int32", {"rows": r, "cols": c}) for r, c in product(ctas, threads)]


def unit_loops(quick: bool) -> list[Task]:
    """Loops of one unit by their CTAs, from a part of a GPU to eight an SM, milliseconds long."""
    ctas, iterations = ((528,), 2**11) if quick else ((66, 132, 264, 528, 1056), 2**13)
    return [Task("power", op, loop.dtype, {"rows": r, "cols": iterations}) for op, loop in LOOPS.items() for r in ctas]
