"""The order of seven cards in products of fp32 on CUDA cores, by costs that rows of two other GPUs have set.

Run with ``python experiments/021_natural_experiments/cards.py`` (some minutes); it prints the README's two figures.
"""

import numpy as np
import pandas as pd
import predictions as of_pairs
from matched import Pair, matched
from scores import tau_b

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.implementations import load_implementations
from dse.hardware.presets import load_sheet
from dse.measured.table import read_times
from dse.measured.timed_rows import best
from experiments import data
from experiments.common.modules import experiment

simt = experiment("018_simt_products")

CARDS = ("M40", "TitanX-Maxwell", "TitanX-Pascal", "GTX1080Ti", "P100-PCIE-16GB", "V100-SXM2-16GB", "T4")
"""Cards of DeepBench, from Maxwell to Turing, whose order is predicted."""

TABLES = ("deepbench__gemm", "deepbench__gemm_released")

FITTED = {"A100-PCIE-40GB": "a100_pcie_40gb", "H100-SXM5-80GB": "h100_sxm"}
"""Device -> preset of those whose rows, of another library's products, set the costs."""


def costs() -> dict[str, float]:
    """Return the costs of products on CUDA cores, fitted to FITTED alone."""
    tables = [read_times(data.path("neusight__gemm_fp32"))]
    frame = tables[0].frame[tables[0].frame["device"].isin(FITTED)]
    sheets = {device: load_sheet(preset) for device, preset in FITTED.items()}
    rows = load_implementations(frame, sheets, Skipped(), simt.MOST)[simt.NAME]
    answer, _ = simt.fitted(rows, tuple(sorted(FITTED.values())), tables, np.ones(len(rows.table), bool))
    return dict(answer.fit.values)


def times(values: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the times of CARDS (shapes, cards) [us], measured, ours and the data sheet's, on shapes that all ran."""
    keys = ["m", "n", "k", "layout"]
    frames = []
    for card in CARDS:
        mine, _ = matched(Pair("products", card, CARDS[0], "fp32", "", TABLES, ""), 10**6)
        frames.append(mine.set_index(keys))
    shapes = frames[0].index
    for frame in frames[1:]:
        shapes = shapes.intersection(frame.index)
    found: dict[str, list[np.ndarray]] = {"measured": [], "ours": [], "sheet": []}
    for frame in frames:
        rows = of_pairs.timed(frame.loc[shapes].reset_index())
        assert len(rows.table) == len(shapes)
        found["measured"].append(rows.table["latency_us"].to_numpy())
        found["ours"].append(best(model_of(values), rows)[0])
        found["sheet"].append(np.maximum(rows.table["compute_us"], rows.table["memory_us"]).to_numpy())
    return {name: np.stack(columns, 1) for name, columns in found.items()}


def order() -> pd.Series:
    """Return Kendall's tau-b in the mean of shapes, ``ours`` and the data ``sheet``'s, and how many ``shapes``."""
    every = times(costs())
    found = {name: float(np.nanmean(tau_b(every[name], every["measured"]))) for name in ("ours", "sheet")}
    return pd.Series(found | {"shapes": len(every["measured"])})


if __name__ == "__main__":
    print(order().round(2).to_string())
