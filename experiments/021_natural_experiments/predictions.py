"""Predictions of a pair's rows by fits that have seen neither member, and of the rooflines beside them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.implementations import by_implementation, fit_implementation, load_implementations
from dse.calibration.timing.rows_fit import drawn_rows, left_out
from dse.calibration.timing.stages import staged_fit
from dse.hardware.presets import load_sheet
from dse.measured.quantisation_time import quantising_us
from dse.measured.row_shape import ATTENTION
from dse.measured.table import read_times
from dse.measured.timed_rows import TimedRows, best, blocks, joined
from dse.timing.calibration import calibration_for, implementation_calibration, load_timing_calibration
from dse.timing.timing import TimingModel
from dse.workload.implementation import KINDS
from experiments import data
from experiments.common.vector_fit import fit_vector

FITTED = {
    "a100_sxm_80gb": ("aiconfigurator__gemm", "A100-SXM4-80GB"),
    "h100_sxm": ("aiconfigurator__gemm", "H100-SXM5-80GB"),
    "h200": ("aiconfigurator__gemm", "H200-SXM-141GB"),
    "rtx_a6000": ("llmservingsim__layers", "RTXA6000"),
    "rtx_pro_6000": ("llmservingsim__layers", "RTXPRO6000-BW"),
    "v100_sxm2_16gb": ("deepbench__gemm", "V100-SXM2-16GB"),
}
"""Preset -> table and device of the products that fits are made of (those of experiment 012)."""

ATTENTION_TABLES = ("aiconfigurator__attention", "llmservingsim__attention")
ATTENTION_DEVICES = {
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200",
    "RTXPRO6000-BW": "rtx_pro_6000",
}


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
        rows = {}
        for name, (table, device) in FITTED.items():
            frame = read_times(data.path(table)).frame
            mine = (frame["op"] == "gemm") & frame["dtype"].isin(("bf16", "fp16")) & (frame["device"] == device)
            rows[name] = drawn_rows(frame[mine], {device: load_sheet(name)}, None, Skipped(), most=self.most)
        return rows

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
                values = mean_costs(name, without)
            self.attention[name, without] = values
        return self.attention[name, without]


def mean_costs(name: str, without: frozenset[str]) -> dict[str, float]:
    """Return the geometric mean of the costs of an implementation's kind, the mean where one of them is 0."""
    alike = [other for other, kind in KINDS.items() if kind == KINDS[name] and other != name]
    known = [c.values for c in map(implementation_calibration, alike) if c.gpus and not without & set(c.gpus)]
    table = pd.DataFrame([dict(values) for values in known])
    return {
        cost: float(np.exp(np.log(column).mean()) if (column > 0).all() else column.mean())
        for cost, column in table.items()
    }


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
    return [predicted(rows, best(model, rows)[0], three_numbers(trained, rows.table)) for rows in sides]


def data_types(sides: tuple[TimedRows, TimedRows]) -> list[Predicted]:
    """Return two data types of a GPU under its shipped calibration, which has seen no row of the first type."""
    gpu = str(sides[0].table["device"].iloc[0])
    model = load_timing_calibration(calibration_for(load_sheet(gpu).name)).model
    trained = sides[1].table
    return [
        predicted(rows, best(model, rows)[0] + quantising_us(model, rows), three_numbers(trained, rows.table))
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
            pooled[some] = three_numbers(trained[trained["op"] == op], rows.table[some])
    return predicted(rows, times[rows.table["place"].to_numpy()], pooled)


def vector_kernels(
    tables: Iterable[str], without: frozenset[str], sides: tuple[TimedRows, TimedRows]
) -> list[Predicted]:
    """Return both sides of a pair of GPUs under a fit to the same library's vector kernels on all others."""
    vector = vector_experiment()
    frame = pd.concat([read_times(data.path(name)).frame for name in tables], ignore_index=True)
    others = frame[frame["op"].isin(sides[0].table["op"].unique())]
    others = others[~others["device"].isin([s.table["device"].iloc[0] for s in sides])].assign(side=-1, place=0)
    both = [side.table.assign(side=i) for i, side in enumerate(sides)]
    frame = pd.concat([others, *both], ignore_index=True)[[*others.columns]]
    name = next(k for k, names in vector.items() if set(names) & set(tables))
    weight = 1 / np.sqrt(frame.groupby("op")["op"].transform("size").to_numpy())
    sheets = {str(device): load_sheet(str(device)) for device in frame["device"].unique()}
    fit = fit_vector(frame, sheets, name, np.where(frame["side"] < 0, weight, 0.0))
    trained = joined([timed(part) for _, part in others.groupby("device")]).table
    return [
        predicted(rows, fit.predicted_us[(frame["side"] == i).to_numpy()], three_numbers(trained, rows.table))
        for i, rows in enumerate(sides)
    ]


def vector_experiment() -> dict[str, tuple[str, ...]]:
    """Return the library of each table of vector kernels (experiment 014)."""
    return {
        "vllm_vector": ("vidur__elementwise_norm",),
        "pytorch_vector": ("neusight__vector_fp32",),
    }


def three_numbers(trained: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """Return times [us] of an overhead and two efficiencies fitted to other rows."""

    def time(logs: np.ndarray, of: pd.DataFrame) -> np.ndarray:
        overhead, arithmetic, memory = np.exp(logs)
        return overhead + np.maximum(of["compute_us"] / arithmetic, of["memory_us"] / memory).to_numpy()

    def error(logs: np.ndarray) -> float:
        return float(np.abs(np.log(time(logs, trained) / trained["latency_us"].to_numpy())).mean())

    return time(minimize(error, np.log([3.0, 0.75, 0.8]), method="Nelder-Mead").x, table)
