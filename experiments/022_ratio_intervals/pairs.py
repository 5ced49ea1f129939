"""Log errors of predicted ratios: rows of one shape on two devices, by costs that were fitted to neither.

error = log(predicted on the first / on the second) - log(measured on the first / on the second).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import staged_fit
from dse.hardware.presets import find_preset, gpu_index, load_sheet
from dse.measured.board_watts import SETTLED_US
from dse.measured.row_vector import VECTOR
from dse.measured.table import read_operators, read_times
from dse.measured.timed_rows import TimedRows, best, blocks, can_run, joined
from dse.power.board import BoardPower
from dse.timing.calibration import implementation_calibration, shipped_implementations
from dse.timing.timing import TimingModel
from dse.validation.power import compared
from dse.workload.implementation import IMPLEMENTATIONS, KINDS, implementation_index
from experiments import data
from experiments.common.mean_costs import mean_costs
from experiments.common.modules import experiment

SHAPE = ["op", "dtype", "batch", "m", "n", "k", "rows", "cols", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv",
         "causal", "tokens", "hidden"]  # fmt: skip
"""Columns that make two rows the same launch."""

PRODUCTS = (
    ("aiconfigurator__gemm", "aiconfigurator__gemm_released"),
    ("llmservingsim__layers",),
    ("vidur__gemm", "vidur__gemm_released"),
    ("deepbench__gemm", "deepbench__gemm_released"),
)
OTHERS = (
    ("aiconfigurator__attention", "aiconfigurator__attention_released"),
    ("vidur__elementwise_norm", "vidur__elementwise_norm_released"),
    ("neusight__vector_fp32",),
)
POWER = ("aiconfigurator__power", "aiconfigurator__power_new", "aiconfigurator__power_released")
RUNS = "llm_inference_bench__e2e"

LEAST_US = 10.0
"""Rows from this time on tell of the GPU more than of the host."""

MOST = 300
"""Rows of a device in a fit, and of a pair, that are drawn at random."""

LEAST_ROWS = 25
"""Rows of a pair and a class of kernels, below which it tells nothing."""

COLUMNS = ["metric", "table", "first", "second", "kind", "kernels", "error"]


def time_errors() -> pd.DataFrame:
    """Return the rows of pairs of times in COLUMNS; two measured tables of one source count as its first."""
    return _in_columns([*_products(), *_others()])


def power_errors() -> pd.DataFrame:
    """Return the rows of pairs of watts in COLUMNS, by the shipped model."""
    return _in_columns(list(_power()))


def _in_columns(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)[COLUMNS].round({"error": 4})


def _frame(tables: tuple[str, ...]) -> pd.DataFrame:
    """The rows of tables that are long enough, with ``preset`` and what their shape lacks as 0."""
    frame = pd.concat([read_times(data.path(name)).frame for name in tables], ignore_index=True)
    frame["preset"] = [find_preset(str(device)) for device in frame["device"]]
    frame = frame[frame["preset"].notna() & (frame["latency_us"] >= LEAST_US)]
    return frame[[gpu_index()[p]["supported"] == "1" for p in frame["preset"]]]


def _shared_rows(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, pd.DataFrame]]:
    """Yield each pair of presets with its rows of the same shapes, in the same order."""
    shape = [column for column in SHAPE if column in frame and frame[column].notna().any()]
    frame = frame.assign(shape=_key(frame, shape)).drop_duplicates(["preset", "shape"])
    for one, two in combinations(sorted(frame["preset"].unique()), 2):
        sides = [frame[frame["preset"] == preset].set_index("shape") for preset in (one, two)]
        common = sides[0].index.intersection(sides[1].index).to_series()
        if len(common) >= 2 * LEAST_ROWS:
            drawn = common.sample(min(MOST, len(common)), random_state=0)
            yield one, two, *(side.loc[drawn].reset_index() for side in sides)


def _key(frame: pd.DataFrame, columns: list[str]) -> pd.Series:
    """The cells of a row as one text."""
    return frame[columns].map(str).agg(" ".join, axis=1)


def _timed(frame: pd.DataFrame, preset: str) -> TimedRows:
    sheets = {str(device): load_sheet(preset) for device in frame["device"].unique()}
    return joined(list(blocks(frame.drop(columns="preset"), sheets, None, Skipped())))


def _predicted(model: TimingModel, rows: TimedRows) -> pd.DataFrame:
    """Rows by shape with what was measured and predicted, and the sheet's times of arithmetic and of bytes [us]."""
    us, _ = best(model, rows)
    table = rows.table[["shape", "latency_us", "compute_us", "memory_us"]]
    return table.assign(predicted_us=us)[can_run(us)].set_index("shape")


def _errors(table: str, kind: str, sides: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The errors of a pair, by the class of kernels that the sheets of both say."""
    (one, first), (two, second) = sides.items()
    both = first.join(second, how="inner", lsuffix="_1", rsuffix="_2")
    predicted = both["predicted_us_1"] / both["predicted_us_2"]
    arithmetic = both["compute_us_1"] + both["compute_us_2"] > both["memory_us_1"] + both["memory_us_2"]
    found = pd.DataFrame(
        {
            "error": np.log(predicted / (both["latency_us_1"] / both["latency_us_2"])),
            "kernels": np.where(arithmetic & (kind != "vector"), "arithmetic", "memory"),
        }
    )
    return found.assign(metric="time", table=table, first=one, second=two, kind=kind)


def _products() -> Iterator[pd.DataFrame]:
    """Products by fits to the devices of experiments/012 without either of the two."""
    fits = experiment("012_timing_calibration")
    devices = fits.load(fits.GRAPHS | fits.OTHERS, MOST)
    values: dict[frozenset[str], dict[str, float]] = {}
    for tables in PRODUCTS:
        frame = _frame(tables)
        frame = frame[(frame["op"] == "gemm") & frame["dtype"].isin(("bf16", "fp16"))]
        for one, two, *sides in _shared_rows(frame[frame["preset"].isin(_with_tensor_cores())]):
            out = frozenset((one, two)) & frozenset(devices.rows)
            if out not in values:
                rows = joined([mine for name, mine in devices.rows.items() if name not in out])
                values[out] = staged_fit(rows, left_out(rows.table["family"])).values
            model = model_of(values[out])
            predicted = {p: _predicted(model, _timed(side, p)) for p, side in zip((one, two), sides, strict=True)}
            yield _errors(tables[0], "products", predicted)


def _with_tensor_cores() -> list[str]:
    return [name for name, row in gpu_index().items() if row["supported"] == "1" and load_sheet(name).tensor_types()]


def _others() -> Iterator[pd.DataFrame]:
    """Attention and vector kernels by the mean costs of implementations that were fitted to neither of the two."""
    for tables in OTHERS:
        frame, kind = _frame(tables), "attention" if "attention" in tables[0] else "vector"
        frame = frame[frame["group"].str.contains("vllm")] if kind == "attention" else frame
        frame = frame[frame["op"].isin(VECTOR)] if kind == "vector" else frame
        for one, two, *sides in _shared_rows(frame):
            rows = {p: _timed(side, p) for p, side in zip((one, two), sides, strict=True)}
            predicted = {p: _by_others(mine, {one, two}) for p, mine in rows.items()}
            if all(len(side) for side in predicted.values()):
                yield _errors(tables[0], kind, predicted)


def _by_others(rows: TimedRows, out: set[str]) -> pd.DataFrame:
    """Rows with times by the mean costs of their kind's implementations without ``out``; none without such."""
    first = np.minimum.reduceat(np.asarray(rows.kernels.implementation).astype(int), rows.starts)
    kinds, parts = np.array([KINDS[IMPLEMENTATIONS[i]] for i in first]), []
    for kind in np.unique(kinds):
        fits = [implementation_calibration(name) for name in shipped_implementations() if KINDS[name] == kind]
        costs = [one.values for one in fits if not out & set(one.gpus)]
        if costs:
            mine = rows.keep(kinds == kind)
            place = implementation_index(next(name for name in KINDS if KINDS[name] == kind))
            same = replace(mine.kernels, implementation=np.full_like(mine.kernels.implementation, place))
            parts.append(_predicted(model_of(mean_costs(costs)), replace(mine, kernels=same)))
    return pd.concat(parts) if parts else pd.DataFrame()


def _power() -> Iterator[pd.DataFrame]:
    """Watts of one launch, or of one run of a network, on two boards, by the shipped model of the power."""
    parts = [compared(read_operators(data.path(name)), "measured", BoardPower.from_table())[0] for name in POWER]
    kernels = pd.concat(parts, ignore_index=True)
    yield _watts(POWER[0], "kernels", kernels[kernels["latency_us"] >= SETTLED_US], SHAPE)
    runs = compared(read_operators(data.path(RUNS)), "measured", BoardPower.from_table())[0]
    runs = runs.assign(network=runs["notes"].str.extract("model=([^;]+)")[0])
    yield _watts(RUNS, "runs", runs, ["network", "batch", "seq_q", "seq_kv", "tp"])


def _watts(table: str, kind: str, rows: pd.DataFrame, shape: list[str]) -> pd.DataFrame:
    shape = [column for column in shape if column in rows]
    rows = rows.assign(shape=_key(rows, shape), error=np.log(rows["predicted_w"] / rows["power_w"]))
    by_board = rows.groupby(["shape", "gpu"])["error"].mean().unstack("gpu")
    parts = []
    for one, two in combinations(sorted(by_board.columns), 2):
        error = (by_board[one] - by_board[two]).dropna()
        parts.append(pd.DataFrame({"error": error}).assign(first=one, second=two))
    return pd.concat(parts, ignore_index=True).assign(metric="power", table=table, kind=kind, kernels="all")
