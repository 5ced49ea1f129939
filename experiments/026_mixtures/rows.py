"""Rows of mixtures by the implementation that ran them: their two products, and what their passes take."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.calibration.timing.rows_fit import left_out
from dse.evaluate.batching import over_arrays
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, load_sheet
from dse.measured.compound.experts import MIXTURE, expert_operators
from dse.measured.compound.rows import family
from dse.measured.protocol import as_measured, protocol_of
from dse.measured.rooflines import sheet_times
from dse.measured.table import OperatorTable, read_times
from dse.timing.calibration import SHARED, load_timing_calibration
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator
from dse.workload.operators.expert_products import EXPERTS
from dse.workload.target import Target
from experiments import data

TABLE, SOURCE = "aiconfigurator__moe", "aiconfigurator"

BLACKWELL, RTX_PRO_6000 = "B200-SXM", "RTXPRO6000-BW"

DEVICES = {
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200",
    BLACKWELL: "b200",
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "L40S": "l40s",
    RTX_PRO_6000: "rtx_pro_6000",
}

OUTLIER = "outlier"
"""Word in the notes of rows that are 2.5 times as long as both neighbours of their sweep."""

UNTUNED = r"impl=sglang-\S*flashinfer_cutlass"
"""Kernels of sglang for experts without a gate, which no tuning has chosen: four times slower than its others."""

OTHERS = (
    (BLACKWELL, "", r"sglang-0\.5\.14/sglang_fused_moe_triton"),
    (BLACKWELL, "", r"vllm-0\.24\.0/\S*(?:flashinfer_cutlass|marlin)"),
    (BLACKWELL, "w4a16_mxfp4", r"trtllm-|vllm-0\.19"),
    ("H100|H200", "w4a16_mxfp4", r"trtllm-|vllm-0\.19|\S*marlin"),
    (RTX_PRO_6000, "bf16", r"sglang-0\.5\.10"),
)
"""Kernels that no record is of, by device, type and words after ``impl=``: those that a release runs for few networks,
and those that no record comes near."""

ROUTES = r"impl=(?:sglang-0\.5\.14|vllm-0\.24\.0)/\S*flashinfer_trtllm"
"""Kernels on a B200 that choose experts themselves, by groups where a network does: :func:`grouped`."""

SORT, CHOICE = "expert_sort", "expert_choice"
"""Kernels whose time no fitted stretch changes; the first stands for the small passes, with launches and waits."""

PRODUCT = "gemm"
"""Kind of operators that are products."""

BLOCK = 512
"""Kernels that are timed at once."""


@dataclass
class Part:
    """Rows of one implementation: ``products`` (rows, 2, candidates) and ``gpus`` (rows,); [us] of each row
    ``plain_us`` that passes take whatever is fitted, ``bytes_us`` of passes over activations, ``launch_us`` of one
    launch more and ``wait_us`` of one latency; ``experts`` and ``pairs`` (1000) that are sorted, ``unaligned`` (rows,
    2)."""

    name: str
    table: pd.DataFrame
    products: Kernel
    gpus: Gpu
    plain_us: np.ndarray
    bytes_us: np.ndarray
    launch_us: np.ndarray
    wait_us: np.ndarray
    experts: np.ndarray
    pairs: np.ndarray
    unaligned: np.ndarray

    @property
    def out(self) -> np.ndarray:
        """Which rows no fit may see."""
        return left_out(self.table["family"])


def measured_rows() -> tuple[OperatorTable, pd.DataFrame]:
    """Return the table and its rows of mixtures on DEVICES, without outliers and kernels that are of no record."""
    table = read_times(data.path(TABLE))
    frame = table.frame
    notes = frame["notes"].astype(str)
    kept = frame["op"].eq(MIXTURE) & frame["device"].isin(list(DEVICES))
    kept &= ~notes.str.contains(OUTLIER) & ~notes.str.contains(UNTUNED)
    kept &= ~(grouped(frame) & notes.str.contains(ROUTES) & frame["device"].eq(BLACKWELL))
    for device, dtype, kernels in OTHERS:
        there = frame["device"].str.contains(device) & frame["dtype"].str.contains(dtype)
        kept &= ~(there & notes.str.contains(f"impl=(?:{kernels})"))
    return table, frame[kept].reset_index(drop=True)


def grouped(frame: pd.DataFrame) -> pd.Series:
    """Return which rows call balanced what is not: a choice by groups (DeepSeek-V3: 4 of 8 groups of 32 experts) of
    logits that are alike in every group takes the first groups, all of them of the first ranks."""
    shape = frame["experts"].eq(256) & frame["topk"].eq(8) & frame["hidden"].eq(7168)
    return shape & frame["distribution"].eq("balanced") & frame["moe_ep"].gt(1)


def implementation_of(operators: Sequence[Operator]) -> str:
    """Return the implementation of a row's products, "" where nothing was fitted to such."""
    kernel = next(o for o in operators if o.kind == PRODUCT).candidates[0].kernel
    assert isinstance(kernel, Kernel)
    name = IMPLEMENTATIONS[int(kernel.implementation)]
    return name if KINDS[name] == EXPERTS else ""


def parts_of(frame: pd.DataFrame, only: str = "") -> list[Part]:
    """Return the rows of each implementation of experts whose name has the expression ``only``."""
    sheets = {device: load_sheet(preset) for device, preset in DEVICES.items()}
    found: dict[str, list[tuple[Any, tuple[Operator, ...]]]] = {}
    way = protocol_of(SOURCE)
    for row in frame.itertuples():
        target = Target.of([sheets[str(row.device)].numbers()], way.library)
        try:
            operators = expert_operators(row, target)
        except InputError:
            continue
        name = implementation_of(operators)
        if name and re.search(only, name):
            found.setdefault(name, []).append((row, operators))
    return [part_of(name, rows, sheets) for name, rows in found.items()]


def part_of(name: str, rows: list[tuple[Any, tuple[Operator, ...]]], sheets: dict[str, GpuSheet]) -> Part:
    """Return the rows of an implementation with what their passes take."""
    way = protocol_of(SOURCE)
    records = {d: jax.tree.map(float, as_measured(s.record(), s.name, SOURCE, way)) for d, s in sheets.items()}
    gpus = [records[str(row.device)] for row, _ in rows]
    us = _passes_us([operators for _, operators in rows], gpus)
    products = [[c.kernel for c in o.candidates] for _, operators in rows for o in operators if o.kind == PRODUCT]
    stretched = [getattr(kernels[0], "stretch", 1.0) != 1.0 for kernels in products]
    unaligned = np.array(stretched, float).reshape(len(rows), 2)
    sheet = [sum(np.array(sheet_times(_first(o), sheets[str(row.device)])) for o in ops) for row, ops in rows]
    overhead = way.overhead_us * np.array([len(operators) for _, operators in rows])
    compute, memory = np.array(sheet).T
    table = pd.DataFrame([row for row, _ in rows]).assign(
        family=[family(row) for row, _ in rows],
        overhead_us=overhead,
        compute_us=compute,
        memory_us=memory,
        harness=way.name,
    )
    return Part(
        name=name,
        table=table,
        products=_stacked(products, len(rows)),
        gpus=jax.tree.map(lambda *x: np.asarray(x, np.float32), *gpus),
        plain_us=overhead + us["plain"],
        bytes_us=us["bytes"],
        launch_us=us["launch"] - us["sort"],
        wait_us=us["wait"] - us["sort"],
        experts=table["experts"].to_numpy(float),
        pairs=np.array([pairs_of(operators) for _, operators in rows]) / 1000.0,
        unaligned=unaligned,
    )


def _first(operator: Operator) -> Kernel:
    kernel = operator.candidates[0].kernel
    assert isinstance(kernel, Kernel)
    return kernel


def _stacked(products: list[list[Any]], rows: int) -> Kernel:
    """Kernels (rows, 2, candidates), the last repeated where a product has fewer, without what is fitted of them."""
    most = max(map(len, products))
    kernels = Kernel.stack([k for ks in products for k in (*ks, *(most - len(ks)) * ks[-1:])])
    kernels = replace(kernels, stretch=np.ones(len(kernels.ctas)))
    return jax.tree.map(lambda x: np.asarray(x, np.float32).reshape(rows, 2, most), kernels)


def _passes_us(rows: Sequence[Sequence[Operator]], gpus: Sequence[Gpu]) -> dict[str, np.ndarray]:
    """Times of rows [us]: of passes that nothing stretches and of others, of sorting, and of that with one launch more
    or one wait."""
    places, kernels, roles = [], [], []
    for i, operators in enumerate(rows):
        for operator in (o for o in operators if o.kind != PRODUCT):
            bare = replace(_first(operator), stretch=1.0)
            mine = {"plain" if operator.name in (SORT, CHOICE) else "bytes": bare}
            if operator.name == SORT:
                bare = replace(bare, launches=1.0, serial_waits=0.0)
                more = {"launch": replace(bare, launches=2.0), "wait": replace(bare, serial_waits=1.0)}
                mine = {"plain": bare, "sort": bare, **more}
            for role, kernel in mine.items():
                places.append(i)
                kernels.append(kernel)
                roles.append(role)
    us = times_us(load_timing_calibration(SHARED).model, kernels, [gpus[i] for i in places])
    where, names = np.array(places), np.array(roles)
    return {name: np.bincount(where[names == name], us[names == name], len(rows)) for name in np.unique(names)}


def pairs_of(operators: Sequence[Operator]) -> float:
    """Return the pairs that a row sorts."""
    rows = next(o for o in operators if o.name == SORT).shape.split(" x ")[0]
    return float(rows) / constant("expert_sort_arrays")


@jax.jit
def _times(model: Any, kernels: Kernel, gpus: Gpu) -> Array:
    return over_arrays(model.nanoseconds, kernels, gpus)


def times_us(model: Any, kernels: list[Kernel], gpus: list[Gpu]) -> np.ndarray:
    """Return the times of kernels, each on its GPU [us]."""
    found = []
    for start in range(0, len(kernels), BLOCK):
        mine, on = kernels[start : start + BLOCK], gpus[start : start + BLOCK]
        count, fill = len(mine), BLOCK - len(mine)
        stacked = jax.tree.map(lambda x: jnp.asarray(x, float), Kernel.stack([*mine, *fill * mine[-1:]]))
        where = jax.tree.map(lambda *x: jnp.asarray(x, float), *on, *fill * on[-1:])
        found.append(np.asarray(_times(model.anonymous(), stacked, where))[:count])
    return np.concatenate(found) * 1e-3
