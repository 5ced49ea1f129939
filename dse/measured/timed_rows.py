"""Measured rows beside the kernels that could have run: built, timed and chosen in blocks, so memory is bounded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.numerics import INFEASIBLE
from dse.base.skipped_rows import Skipped
from dse.base.units import GIGA
from dse.evaluate.corrections import correction_factors
from dse.evaluate.shared_programs import fastest_of_rows, times_of_rows
from dse.hardware.gpu import Gpu
from dse.hardware.own_gpus import preset_of
from dse.hardware.presets import GpuSheet
from dse.measured.layer_rows import link_us
from dse.measured.profiled_layer import OWN, Reading, reading
from dse.measured.protocol import Protocol, as_measured, protocol_of
from dse.measured.protocol_overheads import overhead_of
from dse.measured.quantisation_passes import quantises
from dse.measured.rooflines import sheet_times
from dse.measured.row_operator import family, operator
from dse.measured.row_shape import ALL_REDUCE, reduction_of, types_of
from dse.measured.row_vector import VECTOR
from dse.measured.throttling import slowdowns
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operators.narrow_products import generation_on
from dse.workload.target import Target

ROWS = 256
"""Rows whose candidate kernels are built at a time."""

SEEN = 0.02
"""Share of a kernel's time that shows in any case, so that a fit has a slope everywhere."""

NEVER_US = 1e12
"""Time of a kernel that cannot run [us]: finite, longer than any run, and chosen only where nothing can."""


def can_run(predicted_us: np.ndarray | pd.Series) -> np.ndarray:
    """Return which rows have a kernel that runs. Half of NEVER_US tells, since 32 bits round it below itself."""
    return np.asarray(predicted_us) < NEVER_US / 2


@dataclass(frozen=True)
class TimedRows:
    """Rows of a table with their candidates: ``kernels`` (candidates,) of row ``row`` (candidates,), ``labels``.

    ``table`` gains ``family``, ``harness``, ``quantises``, ``overhead_us``, ``shadow_us``, ``launches``, ``run_us``,
    ``drawn`` and ``zeros`` of its readings (:func:`dse.measured.throttling.slowdowns`), and the data
    sheet's ``compute_us`` and ``memory_us`` [us]; ``gpus`` (rows,) are as they were measured
    (:func:`dse.measured.protocol.as_measured`).
    """

    table: pd.DataFrame
    gpus: Gpu
    kernels: Kernel
    row: np.ndarray
    labels: tuple[str, ...]

    @property
    def starts(self) -> np.ndarray:
        """Where each row's candidates begin."""
        return np.flatnonzero(np.r_[True, self.row[1:] != self.row[:-1]])

    def keep(self, rows: np.ndarray) -> "TimedRows":
        """Return the rows of a mask (rows,)."""
        mine = rows[self.row]
        gpus = jax.tree.map(lambda x: x[rows], self.gpus)
        kernels = jax.tree.map(lambda x: x[mine], self.kernels)
        labels = tuple(label for label, kept in zip(self.labels, mine, strict=True) if kept)
        numbers = np.cumsum(rows) - 1
        return TimedRows(self.table[rows].reset_index(drop=True), gpus, kernels, numbers[self.row[mine]], labels)

    def take(self, places: np.ndarray, model: TimingModel) -> "Chosen":
        """Return the candidates at ``places`` (rows, n), the first of each row the one that ``model`` finds fastest."""
        first = jax.tree.map(lambda x: x[places[:, 0]], self.kernels)
        slower = _slowdowns(model, first, self.gpus, self.table)
        kernels = jax.tree.map(lambda x: jnp.asarray(x[places]), self.kernels)
        return Chosen(self.table, self.gpus, kernels, places, slower, correction_factors(model, first))

    def read_us(self, time: np.ndarray) -> np.ndarray:
        """Return what its protocols read of kernels' times (rows,) [us] (:func:`as_read`)."""
        overhead, shadow = (self.table[column].to_numpy() for column in ("overhead_us", "shadow_us"))
        return as_read(time, overhead, shadow)

    def shortlist(self, model: TimingModel, count: int) -> "Chosen":
        """Return the ``count`` candidates of each row that ``model`` finds fastest (repeated where there are fewer)."""
        time = times_of_rows(model, self.kernels, self.gpus, self.row)
        ends = np.r_[self.starts[1:], len(self.row)]
        count = min(count, int((ends - self.starts).max()))
        places = np.empty((len(self.table), count), int)
        for i, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            order = np.argsort(time[start:end], kind="stable")[:count] + start
            places[i] = np.resize(order, count)
        return self.take(places, model)


@dataclass(frozen=True)
class Chosen:
    """Rows with equally many candidates each: ``kernels`` (rows, n), which stand at ``places`` (rows, n) of the set.

    ``slower`` (rows,): how many times as long the first of each takes in the board's power limit
    (:func:`dse.measured.throttling.slowdowns`). ``off`` (rows,): how many times as long as the equations say, by the
    model's discrepancy.
    """

    table: pd.DataFrame
    gpus: Gpu
    kernels: Kernel
    places: np.ndarray
    slower: np.ndarray
    off: np.ndarray

    def slowdowns(self, model: TimingModel, drawn: float) -> np.ndarray:
        """Return ``slower`` where boards draw ``drawn`` times the watts that are predicted [1]."""
        first = jax.tree.map(lambda x: np.asarray(x)[:, 0], self.kernels)
        return _slowdowns(model, first, self.gpus, self.table, drawn)


def _slowdowns(model: TimingModel, kernels: Kernel, gpus: Gpu, table: pd.DataFrame, drawn: float = 1.0) -> np.ndarray:
    launches, run_us, readings, zeros = (table[name].to_numpy() for name in ("launches", "run_us", "drawn", "zeros"))
    return slowdowns(model, kernels, gpus, launches, run_us, drawn * readings, zeros)


def fastest_us(model: TimingModel, rows: TimedRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the time of each row's fastest candidate [us], NEVER_US where none runs, and where it stands; without the
    protocol's overhead."""
    times, places = fastest_of_rows(model, rows.kernels, rows.gpus, rows.row)
    return np.where(times < INFEASIBLE, times, NEVER_US), places


def us_of(timing: Timing) -> jax.Array:
    """Return the time of a launch [us], NEVER_US where it cannot run."""
    return jnp.where(timing.feasible > 0, timing.microseconds, NEVER_US)


def best(model: TimingModel, rows: TimedRows) -> tuple[np.ndarray, Chosen]:
    """Return the predicted time of each row [us], with its overhead and in the board's power limit, and the kernel
    that is fastest, (rows, 1)."""
    time, places = fastest_us(model, rows)
    chosen = rows.take(places[:, None], model)
    return rows.read_us(time * chosen.slower), chosen


def as_read(time: Any, overhead: Any, shadow: Any) -> Any:
    """Return what a protocol sees of kernels' times [us]: its overhead, and what of them outlasts its shadow.

    Arrays of one shape, NumPy's or JAX's, as are the times.
    """
    return overhead + time.__array_namespace__().maximum(time - shadow, SEEN * time)


def blocks(
    frame: pd.DataFrame,
    sheets: Mapping[str, GpuSheet],
    protocol: Protocol | None,
    skipped: Skipped,
) -> Iterator[TimedRows]:
    """Yield the rows of a table block by block; ``sheets``: device -> GPU. Rows without a kernel count in ``skipped``.

    ``protocol``: None takes each row's by its source.
    """
    records: Records = {}
    for start in range(0, len(frame), ROWS):
        block = _block(frame.iloc[start : start + ROWS], sheets, protocol, skipped, records)
        if block is not None:
            yield block


def joined(parts: list[TimedRows]) -> TimedRows:
    """Return several blocks as one."""
    before = np.cumsum([0, *(len(p.table) for p in parts[:-1])])
    return TimedRows(
        pd.concat([p.table for p in parts], ignore_index=True),
        jax.tree.map(lambda *x: np.concatenate(x), *(p.gpus for p in parts)),
        jax.tree.map(lambda *x: np.concatenate(x), *(p.kernels for p in parts)),
        np.concatenate([p.row + n for p, n in zip(parts, before, strict=True)]),
        tuple(label for p in parts for label in p.labels),
    )


Records = dict[tuple[str, str, str], Any]
"""(device, source, clock of a protocol) -> the GPU as it was measured, in plain numbers."""


_READINGS = (
    "family", "harness", "quantises", "overhead_us", "shadow_us", "launches", "run_us", "drawn", "zeros", "compute_us",
    "memory_us",
)  # fmt: skip
"""Columns that a table's rows get, in the order in which :func:`_block` finds them."""


def _block(
    frame: pd.DataFrame,
    sheets: Mapping[str, GpuSheet],
    protocol: Protocol | None,
    skipped: Skipped,
    records: Records,
) -> TimedRows | None:
    kept, columns, gpus, groups = [], [], [], []
    hosts = {device: preset_of(sheets[device]) for device in frame["device"].astype(str).unique()}
    for i, row in enumerate(frame.itertuples()):
        sheet, way = sheets[str(row.device)], protocol or protocol_of(str(getattr(row, "source", "")))
        candidates, before, reason = _candidates(row, sheet, way)
        if reason:
            skipped[reason] += 1
            continue
        kernel = candidates[0].kernel
        arithmetic, memory = sheet_times(kernel, sheet)
        memory = max(memory, link_us(reduction_of(row), sheet)) if row.op == ALL_REDUCE else memory
        kept.append(i)
        columns.append(
            (
                family(row),
                way.name,
                quantises(row, way, generation_on(sheet.numbers())),
                *overhead_of(row, way, hosts[str(row.device)]),
                way.back_to_back(row),
                *before,
                float(way.of_zeros(row)),
                arithmetic,
                memory,
            )
        )
        source = str(getattr(row, "source", ""))
        key = (str(row.device), source, way.clock)
        if key not in records:
            records[key] = jax.tree.map(float, as_measured(sheet.record(), sheet.name, source, way))
        gpus.append(records[key])
        groups.append(candidates)
    if not kept:
        return None
    table = (
        frame.iloc[kept].reset_index(drop=True).assign(**dict(zip(_READINGS, zip(*columns, strict=True), strict=True)))
    )
    kernels = Kernel.stack([c.kernel for group in groups for c in group])
    return TimedRows(
        table,
        jax.tree.map(lambda *x: np.asarray(x, np.float32), *gpus),
        jax.tree.map(lambda x: x.astype(np.float32), kernels),
        np.repeat(np.arange(len(groups)), [len(g) for g in groups]),
        tuple(c.label for group in groups for c in group),
    )


def _candidates(row: Any, sheet: GpuSheet, protocol: Protocol) -> tuple[Any, Reading, str]:
    """The kernels of a row and what goes before its reading, or why it has none on this GPU."""
    numbers = sheet.numbers()
    tensor_type = row.dtype != "fp32" and row.op not in (*VECTOR, ALL_REDUCE)
    if tensor_type and types_of(str(row.dtype))[2] not in sheet.tensor_types():
        return (), OWN, f"{sheet.title} has no tensor cores for {row.dtype}"
    try:
        before = reading(row, protocol, numbers)
        before = before._replace(busy_us=max(protocol.busy_us(row), before.busy_us))
        on = Target.of([numbers], protocol.library)
        found = operator(row, numbers["compute_capability"], protocol, on.library, on.warpgroup, numbers["sm_count"])
    except InputError as error:
        return (), OWN, f"{row.op}: {error}"
    kernel = found.candidates[0].kernel
    assert isinstance(kernel, Kernel)
    read = kernel.read_share * (kernel.cold_bytes + kernel.warm_bytes)
    if read + kernel.write_bytes > numbers["dram_gb"] * GIGA:
        return (), OWN, f"{row.op}: operands of more than {numbers['dram_gb']:g} GB, the memory of {sheet.title}"
    return found.candidates, before, ""
