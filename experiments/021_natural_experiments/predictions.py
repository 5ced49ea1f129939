"""Predictions of a pair's rows by fits that have seen neither member, and of the rooflines beside them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from unittest.mock import patch

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.implementations import by_implementation, fit_implementation, load_implementations
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import staged_fit
from dse.hardware.presets import load_sheet
from dse.measured import quantisation_passes
from dse.measured.quantisation_time import quantising_us
from dse.measured.row_shape import ATTENTION
from dse.measured.table import read_times
from dse.measured.timed_rows import TimedRows, best, blocks, joined
from dse.timing.calibration import calibration_for, implementation_calibration, load_timing_calibration
from dse.timing.timing import TimingModel
from dse.workload.implementation import KINDS
from dse.workload.operators import gemm
from dse.workload.operators.narrow_products import NarrowKernels, narrow_kernels
from experiments import data
from experiments.common.mean_costs import mean_costs
from experiments.common.modules import experiment
from experiments.common.pooled_roofline import pooled_roofline
from experiments.common.vector_fit import fit_vector

products_of = experiment("012_timing_calibration")
FITTED = products_of.GRAPHS | products_of.OTHERS
"""Preset -> table and device of the products that fits are made of."""

PUBLISHED = "vllm"
"""Framework whose sources say which tiles its narrow products have."""

ATTENTION_TABLES = ("aiconfigurator__attention", "llmservingsim__attention")
ATTENTION_DEVICES = experiment("013_attention").DEVICES
"""Device -> preset of what attention is fitted to."""


@dataclass(frozen=True)
class Predicted:
    """A side of a pair: its rows that can be predicted, with ``place`` among the matched ones, our time and rooflines.

    ``ours``, ``sheet``, ``pooled``, ``peak`` (rows,) [us]; ``peak``: arithmetic at the peak, or bytes at the sheet's
    bandwidth where an operator is bound by these.
    """

    place: np.ndarray
    ours: np.ndarray
    sheet: np.ndarray
    pooled: np.ndarray
    peak: np.ndarray


@dataclass
class Fits:
    """Fits without some GPUs, each made once; ``most``: rows of a device that they are made of."""

    most: int
    products: dict[frozenset[str], TimingModel] = field(default_factory=dict)
    attention: dict[tuple[str, frozenset[str]], dict[str, float]] = field(default_factory=dict)

    @cached_property
    def product_rows(self) -> dict[str, TimedRows]:
        """The rows of products that fits are made of, by preset."""
        return products_of.load(FITTED, self.most).rows

    @cached_property
    def attention_rows(self) -> dict[str, TimedRows]:
        """The rows of attention by implementation."""
        frame = pd.concat([read_times(data.path(name)).frame for name in ATTENTION_TABLES], ignore_index=True)
        sheets = {device: load_sheet(name) for device, name in ATTENTION_DEVICES.items()}
        return load_implementations(frame, sheets, Skipped(), self.most)

    def others(self, without: frozenset[str]) -> TimedRows:
        """Return the rows of products of all GPUs but some."""
        return joined([rows for name, rows in self.product_rows.items() if name not in without])

    def product_model(self, without: frozenset[str]) -> TimingModel:
        """Return the timing model fitted to products of all GPUs but some."""
        without = frozenset(without & FITTED.keys())
        if without not in self.products:
            rows = self.others(without)
            self.products[without] = model_of(staged_fit(rows, left_out(rows.table["family"])).values)
        return self.products[without]

    def attention_costs(self, name: str, without: frozenset[str]) -> dict[str, float]:
        """Return the costs of an implementation of attention that no row of some GPUs has set.

        Its own where none of them ran it; a fit to its other GPUs; else the mean of its kind's others, which may see
        none of these GPUs either.
        """
        shipped = implementation_calibration(name)
        if not without & set(shipped.gpus):
            return dict(shipped.values)
        if (name, without) not in self.attention:
            rows = self.attention_rows.get(name)
            device = rows.table["device"].astype(str).map(ATTENTION_DEVICES) if rows else pd.Series(dtype=str)
            kept = ~device.isin(without).to_numpy()
            if rows and kept.any():
                gpus = tuple(sorted(set(device[kept])))
                values = dict(fit_implementation(name, [], rows.keep(kept), gpus).fit.values)
            else:
                values = of_others(name, without)
            self.attention[name, without] = values
        return self.attention[name, without]


def of_others(name: str, without: frozenset[str]) -> dict[str, float]:
    """Return the mean costs of the others of an implementation's kind that saw no row of some GPUs."""
    alike = [other for other, kind in KINDS.items() if kind == KINDS[name] and other != name]
    fits = [one for one in map(implementation_calibration, alike) if one.gpus and not without & set(one.gpus)]
    return mean_costs([one.values for one in fits])


def timed(frame: pd.DataFrame) -> TimedRows:
    """Return the rows of one device with their kernels; ``place``: where each stood."""
    device = str(frame["device"].iloc[0])
    frame = frame.assign(place=np.arange(len(frame)))
    return joined(list(blocks(frame, {device: load_sheet(device)}, None, Skipped())))


def predicted(rows: TimedRows, times: np.ndarray, pooled: np.ndarray) -> Predicted:
    """Return a side of a pair from its rows and the times that are predicted of them [us]."""
    table = rows.table
    compute, memory = table["compute_us"].to_numpy(), table["memory_us"].to_numpy()
    bytes_bind = ~table["op"].isin(("gemm", "gemm_bias", "bmm", "attn_prefill")).to_numpy()
    peak = np.where(bytes_bind, memory, compute)
    return Predicted(table["place"].to_numpy(), times, np.maximum(compute, memory), pooled, peak)


def products(fits: Fits, without: frozenset[str], sides: Iterable[TimedRows]) -> list[Predicted]:
    """Return both sides of a pair of GPUs under a fit to products of all others."""
    model, trained = fits.product_model(without), fits.others(without).table
    return [predicted(rows, best(model, rows)[0], pooled_roofline(trained, rows.table)) for rows in sides]


def _as_published(activations: str, weights: str, generation: str, release: str = "") -> NarrowKernels | None:
    """The kernels that vLLM publishes for two types, with the costs of 16 bits."""
    own = narrow_kernels(activations, weights, generation, PUBLISHED)
    return own._replace(implementation="") if own else None


@contextmanager
def types_never_fitted() -> Iterator[None]:
    """Narrow types as if no row of them had been fitted: costs of 16 bits, and passes as any release's.

    Tiles are those that vLLM publishes for a type and a generation.
    """
    with (
        patch.object(gemm, "narrow_kernels", _as_published),
        patch.object(quantisation_passes, "releases", dict),
    ):
        gemm._candidates.cache_clear()
        try:
            yield
        finally:
            gemm._candidates.cache_clear()


def data_types(sides: tuple[TimedRows, TimedRows]) -> list[Predicted]:
    """Return two data types of a GPU under the costs of 16 bits; rows were made by :func:`types_never_fitted`."""
    gpu = str(sides[0].table["device"].iloc[0])
    model = load_timing_calibration(calibration_for(load_sheet(gpu).name)).model
    trained = sides[1].table
    return [
        predicted(rows, best(model, rows)[0] + quantising_us(model, rows), pooled_roofline(trained, rows.table))
        for rows in sides
    ]


def attention(fits: Fits, without: frozenset[str], sides: Iterable[TimedRows]) -> list[Predicted]:
    """Return both sides of a pair of GPUs under costs of attention that neither has set."""
    trained = pd.concat([rows.table for rows in fits.attention_rows.values()])
    trained = trained[~trained["device"].astype(str).map(ATTENTION_DEVICES).isin(without)]
    return [_attention(fits, without, rows, trained) for rows in sides]


def _attention(fits: Fits, without: frozenset[str], rows: TimedRows, trained: pd.DataFrame) -> Predicted:
    times = np.full(int(rows.table["place"].max()) + 1, np.nan)
    for name, mine in by_implementation(rows).items():
        costs = fits.attention_costs(name, without)
        times[mine.table["place"].to_numpy()] = best(model_of(costs), mine)[0]
    pooled = np.full(len(rows.table), np.nan)
    for op in ATTENTION:
        some = (rows.table["op"] == op).to_numpy()
        if some.any():
            pooled[some] = pooled_roofline(trained[trained["op"] == op], rows.table[some])
    return predicted(rows, times[rows.table["place"].to_numpy()], pooled)


def vector_kernels(tables: Iterable[str], sides: tuple[TimedRows, TimedRows]) -> list[Predicted]:
    """Return both sides of a pair of GPUs under a fit to the same library's vector kernels on all others."""
    frame = pd.concat([read_times(data.path(name)).frame for name in tables], ignore_index=True)
    others = frame[frame["op"].isin(sides[0].table["op"].unique())]
    others = others[~others["device"].isin([s.table["device"].iloc[0] for s in sides])].assign(side=-1, place=0)
    both = [side.table.assign(side=i) for i, side in enumerate(sides)]
    frame = pd.concat([others, *both], ignore_index=True)[[*others.columns]]
    sources = experiment("014_vector_kernels").SOURCES
    name = next(name for name, known in sources.items() if set(known) & set(tables))
    weight = 1 / np.sqrt(frame.groupby("op")["op"].transform("size").to_numpy())
    sheets = {str(device): load_sheet(str(device)) for device in frame["device"].unique()}
    fit = fit_vector(frame, sheets, name, np.where(frame["side"] < 0, weight, 0.0))
    trained = joined([timed(part) for _, part in others.groupby("device")]).table
    return [
        predicted(rows, fit.predicted_us[(frame["side"] == i).to_numpy()], pooled_roofline(trained, rows.table))
        for i, rows in enumerate(sides)
    ]
