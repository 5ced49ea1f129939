"""Stall stacks of a timing model against the warp states that a profiler sampled: shares of time, by class."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import why_skipped
from dse.measured.coverage import SHAPES
from dse.measured.nsight_export import is_export
from dse.measured.profiler.warp_states import NOT_MODELLED, class_shares, classes
from dse.measured.table import read_times
from dse.validation.time import covered_rows, predicted_parts
from dse.validation.worst_rows import PredictedRows

CLASS_OF_CAUSE = {
    "selected": "issue",
    "divergence": "issue",
    "wait": "latency of arithmetic",
    "math_pipe_throttle": "arithmetic",
    "short_scoreboard": "shared memory",
    "long_scoreboard": "global memory",
    "lg_throttle": "global memory",
    "mio_throttle": "global memory",
    "dram_bandwidth": "global memory",
    "l2_bandwidth": "global memory",
    "die_link": "global memory",
    "launch": "launch and fetch",
}
"""Cause of a stack -> class of warp states. What a stack books under bandwidth a warp waits for as for latency, and
AMALI books queues of DRAM under ``mio_throttle``. Other parts of a row's time are no kernel's."""

MEANING = (
    "Shares of the time that warps were resident, beside shares of the kernel's time in the stack. Barriers and what "
    "else no cause stands for are left out of the comparison, and their share is told."
)


def validate_stalls(
    table: Path, timing: str = "amali", gpu: str | None = None, calibration: str | None = None
) -> dict[str, Any]:
    """Return how stacks of a timing model share out a kernel's time, beside warp states of an export of Nsight Compute.

    A document: ``rows`` hold ``measured`` and ``predicted`` shares by class [1], which add up to 1, ``not_modelled``
    [1], the share of all warp time that was left out, ``misplaced`` [1], half the sum of differences, and
    ``same_leader``. ``operators`` hold their means. ``gpu`` and ``calibration`` as for
    :func:`dse.validation.time.validate_time`. Raises InputError where the table is no export, has no warp states, or
    no row that can be predicted.
    """
    if not is_export(table):
        raise InputError(f"{table}: is no export of Nsight Compute, and only those hold warp states")
    measured = read_times(table)
    shares = class_shares(table)
    places = np.arange(len(shares))
    frame, models, skipped = covered_rows(measured, timing, gpu, calibration, noise=np.nan, place=places)
    parts = predicted_parts(frame, models, None, None, skipped)
    rows = [row for part in parts for row in _compared(part, shares)]
    if not rows:
        raise InputError(f"{table}: no row can be predicted: {why_skipped(skipped)}")
    return {
        "table": measured.path,
        "table_sha256": measured.sha256,
        "quantity": "stalls",
        "model": timing,
        "meaning": MEANING,
        "operators": _means(rows),
        "rows": rows,
        "skipped": [{"reason": why, "n": n} for why, n in skipped.items()],
    }


def _compared(part: PredictedRows, shares: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """The rows of a part whose stack holds any cause, with both shares."""
    stacks = part.stacks(np.arange(len(part.rows)))
    rows = zip(part.rows.to_dict(orient="records"), stacks, strict=True)
    return [_row(row, stack, shares[int(row["place"])]) for row, stack in rows if CLASS_OF_CAUSE.keys() & stack.keys()]


def _row(row: Mapping[Any, Any], stack: Mapping[str, float], sampled: Mapping[str, float]) -> dict[str, Any]:
    names = [name for name in dict.fromkeys(classes().values()) if name != NOT_MODELLED]
    ours = dict.fromkeys(names, 0.0)
    for cause, us in stack.items():
        if cause in CLASS_OF_CAUSE:
            ours[CLASS_OF_CAUSE[cause]] += us
    predicted, measured = _normalised(ours), _normalised({name: sampled[name] for name in names})
    return {
        "device": row["device"],
        "op": row["op"],
        "dtype": row["dtype"],
        **{name: float(row[name]) for name in SHAPES[row["op"]] if pd.notna(row[name])},
        "kernel": row["group"],
        "measured": measured,
        "predicted": predicted,
        "not_modelled": sampled[NOT_MODELLED],
        "misplaced": sum(abs(predicted[name] - measured[name]) for name in names) / 2.0,
        "same_leader": max(predicted, key=lambda n: predicted[n]) == max(measured, key=lambda n: measured[n]),
    }


def _normalised(values: Mapping[str, float]) -> dict[str, float]:
    total = sum(values.values())
    return {name: value / total if total > 0 else 0.0 for name, value in values.items()}


def _means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean shares and what is misplaced, by operator."""
    found = []
    for op in dict.fromkeys(row["op"] for row in rows):
        mine = [row for row in rows if row["op"] == op]
        mean = {
            which: {name: float(np.mean([row[which][name] for row in mine])) for name in mine[0][which]}
            for which in ("measured", "predicted")
        }
        numbers = {key: float(np.mean([row[key] for row in mine])) for key in ("not_modelled", "misplaced")}
        found.append({"op": op, "n": len(mine), **mean, **numbers, "same_leader": sum(r["same_leader"] for r in mine)})
    return found
