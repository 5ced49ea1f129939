"""Measured rows as kernels on a GPU: the operator in its harness's cache state, the kernel that runs, its activity."""

import re
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.calibrate.layer_rows import ALL_REDUCE, reduction_of
from dse.calibrate.quantised import library_for, quantises
from dse.calibrate.vector_rows import VECTOR, vector_family, vector_of
from dse.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.power.activity import Activity, activity
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel
from dse.workload.attention import attention_operator
from dse.workload.attention_library import library_of
from dse.workload.gemm import gemm_operator
from dse.workload.harness import Harness, harness_of, harnesses
from dse.workload.kernel import Kernel
from dse.workload.library import REPRESENTATIVE, SIMT_TILES, Library
from dse.workload.measured_row import PRODUCTS, attention_of, notes_of, product_of
from dse.workload.operator import Operator, fastest

KERNEL_TILE = re.compile(r"kernel=\S*?(?:sgemm_|tilesize)(\d+)x(\d+)")
"""Tile of a product on CUDA cores in the notes of its row."""

WRITES = "KV-cache write kernel"
"""Words in the notes of attention rows whose time holds the kernel that writes the new keys and values."""


class Rows(NamedTuple):
    """Measured launches of one GPU: the table, their activities and timings (rows,), at the measured time and at the
    model's own."""

    table: pd.DataFrame
    gpu: Gpu
    measured: Activity
    measured_timing: Timing
    own: Activity
    own_timing: Timing


def operator(
    row: Any,
    capability: float,
    harness: Harness | None = None,
    library: Library = REPRESENTATIVE,
    warpgroup: bool = True,
    sm_count: float = 0.0,
) -> Operator:
    """The operator of a row in the cache state of its harness (aiconfigurator's: weights rotated, the rest as warm as
    the L2 allows), with the kernels of a library; raises InputError where no instruction computes in its type.

    ``sm_count`` [1] tells the tiles of the product before it; 0: nothing is known of them.
    """
    harness = harness or harnesses()["aiconfigurator"]
    target = (capability, capability)
    if row.op in VECTOR:
        return vector_of(row, harness, sm_count)
    if row.op == ALL_REDUCE:
        return reduction_of(row)
    notes = notes_of(row)
    if row.op in PRODUCTS:
        product = product_of(row, harness.distances)
        ran = library_for(quantises(row, harness), _that_ran(notes, library))
        return gemm_operator("gemm", product, target, warpgroup, library=ran)
    attention = attention_of(row, writes_cache=WRITES in notes, decoding=row.op == "attn_decode")
    ran = library_of(notes, str(getattr(row, "source", "")), warpgroup)
    return attention_operator("attention", attention, target, warpgroup, library=ran)


def _that_ran(notes: str, library: Library) -> Library:
    """The library with the tile on CUDA cores that the notes name alone, in both orders: libraries that store columns
    first swap the sides."""
    named = KERNEL_TILE.search(notes)
    sides = sorted(int(side) for side in named.groups()) if named else []
    return replace(library, simt_tiles=tuple(t for t in SIMT_TILES if sorted(t[:2]) == sides) or SIMT_TILES)


def family(row: Any) -> str:
    """Name of a row's shape family: rows of one family never stand on both sides of a split."""
    if row.op in PRODUCTS:
        return f"g{row.n:g}_{row.k:g}"
    if row.op in (*VECTOR, ALL_REDUCE):
        return vector_family(row)
    return f"{row.op}{row.heads:g}_{row.kv_heads:g}_{row.head_dim:g}"


def load_rows(
    table: pd.DataFrame, sheet: GpuSheet, skipped: dict[str, int], model: TimingModel | None = None
) -> Rows | None:
    """Rows of a measured table on a GPU: the candidate that the timing ``model`` (None: AMALI uncalibrated) finds
    fastest stands for each.

    Rows without a kernel on this GPU count in ``skipped``; None where no row is left.
    """
    gpu = sheet.record()
    made, groups = [], []
    for place, row in enumerate(table.itertuples()):
        way = harness_of(str(getattr(row, "source", "")))
        try:
            found = operator(
                row, float(gpu.compute_capability), way,
                warpgroup=bool(gpu.warpgroup_mma > 0), sm_count=float(gpu.sm_count),
            )  # fmt: skip
        except InputError as error:
            skipped[f"{row.op}: {error}"] = skipped.get(f"{row.op}: {error}", 0) + 1
            continue
        made.append(place)
        groups.append(found.candidates)
    if not made:
        return None
    table = table.iloc[made].reset_index(drop=True)
    kernels = jax.tree.map(jnp.asarray, Kernel.stack([c.kernel for group in groups for c in group]))  # pyright: ignore[reportArgumentType]
    timed = (model or Amali()).anonymous()
    timing = jax.jit(jax.vmap(lambda kernel: timed(kernel, gpu)))(kernels)
    time = np.where(np.asarray(timing.feasible) > 0, np.asarray(timing.microseconds), np.inf)
    best = fastest(time, np.cumsum([0, *(len(group) for group in groups[:-1])]))
    kernels, timing = jax.tree.map(lambda x: x[best], (kernels, timing))
    table["family"] = [family(row) for row in table.itertuples()]
    at_measured = timing.stretched(jnp.asarray(table["latency_us"].to_numpy()) / timing.microseconds)
    counted = jax.vmap(lambda kernel, timing: activity(kernel, timing, gpu))
    return Rows(table, gpu, counted(kernels, at_measured), at_measured, counted(kernels, timing), timing)


def taken(record: Any, places: np.ndarray) -> Any:
    """The launches at ``places`` of a record of arrays."""
    return jax.tree.map(lambda x: x[places], record)
