"""Errors of products in narrow types whose framework no note names: those of each framework's rows without its name."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.implementations import by_implementation
from dse.calibration.timing.rows_fit import left_out
from dse.hardware.presets import find_preset, load_sheet
from dse.measured.quantisation_time import quantising_us
from dse.measured.row_operator import family
from dse.measured.row_shape import framework_of
from dse.measured.timed_rows import best, blocks, joined
from dse.timing.calibration import calibration_for, implementation_calibration, load_timing_calibration
from dse.timing.error_quantiles import NO_RELEASE, ErrorQuantiles, line_of
from dse.validation.error_quantiles import errors_of
from dse.validation.error_quantiles import unseen as of_unseen
from dse.workload.implementation import KINDS
from dse.workload.operators.narrow_products import NARROW
from experiments.common.modules import experiment

FRAMEWORKS = 2
"""Frameworks that an implementation's rows must be of, so that their errors tell of a further one."""


def intervals() -> dict[str, tuple[ErrorQuantiles, ...]]:
    """Return the intervals of each implementation that stands for products of no known framework: every framework on
    every GPU counts alike, and the widening is that of a further one. Rows are of left-out families."""
    _, frame = experiment("024_narrow_products", "fits.py").measured_rows()
    frame = frame[left_out(family(row) for row in frame.itertuples())]
    frame = frame.assign(framework=[framework_of(str(n)).partition("-")[0] for n in frame["notes"]], notes="")
    every = pd.concat(list(_with_errors(frame)), ignore_index=True)
    found: dict[str, tuple[ErrorQuantiles, ...]] = {}
    for (name, dtype), mine in every.groupby(["unnamed", "dtype"]):
        if mine["framework"].nunique() >= FRAMEWORKS:
            parts = [part for _, part in mine.groupby(["gpu", "framework"])]
            rows = of_unseen(parts, str(name), "gemm", str(dtype), NO_RELEASE)
            found[str(name)] = found.get(str(name), ()) + tuple(map(_or_its_own, rows))
    return found


def _or_its_own(of_others: ErrorQuantiles) -> ErrorQuantiles:
    """The widest of an interval and that of the implementation itself where it was not measured: a row that names no
    framework may have run the very release that stands for it, with the pass of that release."""
    known = implementation_calibration(of_others.implementation).quantiles(
        of_others.implementation, of_others.op, of_others.dtype, of_others.regime
    )
    if known is None:
        return of_others
    return replace(of_others, q10=min(of_others.q10, known.q10), q90=max(of_others.q90, known.q90))


def _with_errors(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each GPU and implementation with their errors."""
    for device, mine in frame.groupby("device"):
        gpu = find_preset(str(device)) or str(device)
        sheet, model = load_sheet(gpu), load_timing_calibration(calibration_for(gpu)).model
        every = joined(list(blocks(mine, {str(device): sheet}, None, Skipped())))
        for name, rows in by_implementation(every).items():
            if KINDS[name] == NARROW:
                us = best(model, rows)[0] + quantising_us(model, rows)
                yield errors_of(rows.table, us, gpu).assign(unnamed=name)


def with_intervals(text: str, rows: tuple[ErrorQuantiles, ...]) -> str:
    """Return the text of a calibration's TOML with these intervals in place of those of its kind."""
    lines = [line for line in text.splitlines() if f'way = "{NO_RELEASE}"' not in line]
    last = max(i for i, line in enumerate(lines) if line.startswith("  { implementation = "))
    return "\n".join([*lines[: last + 1], *(f"  {line_of(row)}," for row in rows), *lines[last + 1 :]]) + "\n"
