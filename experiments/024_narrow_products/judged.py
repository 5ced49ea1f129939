"""Errors of products in narrow types on families that no fit has seen, with the residual by size and without it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import left_out
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import GpuSheet, find_preset, load_sheet
from dse.measured.fitted_roofline import fit_roofline
from dse.measured.quantisation_time import quantising_us
from dse.measured.row_operator import family
from dse.measured.row_shape import framework_of, product_of
from dse.measured.timed_rows import best, blocks, joined
from dse.timing.calibration import calibration_for, load_timing_calibration
from experiments.common.modules import experiment

GROUP = ["gpu", "dtype", "framework"]
"""What tells the lines of the table apart."""

LEAST = 20
"""Left-out rows of a line."""


def judged() -> pd.DataFrame:
    """Return the left-out rows with ``predicted_us``, ``bare_us`` without the residual by size, and ``three_us`` of the
    roofline whose three numbers are fitted to the other families of the same GPU, type and framework."""
    _, frame = experiment("024_narrow_products", "fits.py").measured_rows()
    frame = frame.assign(
        out=left_out(family(row) for row in frame.itertuples()),
        gpu=[find_preset(str(d)) or str(d) for d in frame["device"]],
        framework=[framework_of(str(n)) for n in frame["notes"]],
    )
    parts = [_predicted(str(gpu), mine) for gpu, mine in frame[frame["out"]].groupby("gpu")]
    rows = pd.concat(parts, ignore_index=True)
    return pd.concat([_with_roofline(mine, frame) for _, mine in rows.groupby(GROUP)], ignore_index=True)


def _predicted(gpu: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a GPU with what is predicted of them."""
    sheet, model = load_sheet(gpu), load_timing_calibration(calibration_for(gpu)).model
    rows = joined(list(blocks(frame, {str(d): sheet for d in frame["device"].unique()}, None, Skipped())))
    bare = replace(model, discrepancy=None)
    us = {"predicted_us": best(model, rows)[0], "bare_us": best(bare, rows)[0]}
    passes = quantising_us(model, rows)
    return rows.table.assign(**{name: time + passes for name, time in us.items()})


def _with_roofline(mine: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of one line with the roofline that is fitted to the others of ``frame``."""
    key = mine[GROUP].iloc[0]
    others = frame[(frame[GROUP] == key).all(axis=1) & ~frame["out"]]
    sheet = load_sheet(str(key["gpu"]))
    seen, left = (np.array([_sheet_us(row, sheet) for row in part.itertuples()]).T for part in (others, mine))
    roofline = fit_roofline(seen[0], seen[1], others["latency_us"].to_numpy(float))
    return mine.assign(three_us=roofline(*left))


def _sheet_us(row: Any, sheet: GpuSheet) -> tuple[float, float]:
    """A product's arithmetic and the bytes of its operands by the data sheet [us]."""
    product, numbers = product_of(row, lambda a, b, c: (a, b, c)), sheet.numbers()
    arithmetic = 2e-6 * product.fma / peak_tflops(numbers, "tensor", product.compute)
    moved = product.a_bytes + product.b_bytes + product.out_bytes
    return arithmetic, moved / numbers["dram_bandwidth_gbs"] * 1e-3


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean errors [%] of each line: ``ours``, ``bare`` without the residual by size, ``three``."""
    measured = rows["latency_us"]
    off = {
        name: 100 * (rows[f"{column}_us"] / measured - 1).abs()
        for name, column in (("ours", "predicted"), ("bare", "bare"), ("three", "three"))
    }
    grouped = rows.assign(**off).groupby(GROUP)
    return grouped[list(off)].mean().assign(rows=grouped.size()).query(f"rows >= {LEAST}")


def lines() -> tuple[list[str], list[list[str]]]:
    """Return the table of the README: its head and its lines."""
    head = ["GPU", "type", "framework", "rows", "error, %", "without the residual", "roofline of three numbers"]
    found: Iterator[list[str]] = (
        [*map(str, key), f"{row.rows:.0f}", *(f"{x:.1f}" for x in (row.ours, row.bare, row.three))]
        for key, row in zip(*_pairs(errors(judged())), strict=True)
    )
    return head, list(found)


def _pairs(table: pd.DataFrame) -> tuple[list, list]:
    return list(table.index), list(table.itertuples())
