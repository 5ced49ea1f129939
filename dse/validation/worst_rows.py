"""The predicted rows that are farthest off, each with what its predicted time is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.evaluate.shared_programs import timings_of_rows
from dse.measured.coverage import SHAPES
from dse.measured.layer_rows import LAYER_COLUMN
from dse.measured.network_runs.kinds import RUNS
from dse.measured.throttling import HELD
from dse.timing.timing import HOST, TimingModel

WORST = 20

OVERHEAD = "overhead"
"""Part of a kernel's measured time that is its protocol: launch path, events. A run of a whole network has none
of it: there the GPU waits for the engine's host, HOST."""

SHOWN = 1e-4
"""Share of a kernel's time below which what the power limit adds is no part of its stack."""

QUANTISING = "quantisation"
"""Part of a product's measured time that goes to quantising its activations: kernels and launches of their own."""


@dataclass(frozen=True)
class PredictedRows:
    """Predicted rows, and the stacks of those at some places [us]."""

    rows: pd.DataFrame
    stacks: Callable[[np.ndarray], list[dict[str, float]]]


def worst_rows(rows: pd.DataFrame, runs: np.ndarray, parts: Sequence[PredictedRows]) -> list[dict[str, Any]]:
    """Return the rows that are farthest off, each with its stack [us], which adds up to the predicted time.

    ``rows``: those of all ``parts``, one part after another; ``runs`` (rows,): whether a GPU can run the row at all.
    """
    ratio = np.abs(np.log(rows["predicted_us"] / rows["latency_us"]).to_numpy())
    places = np.argsort(-np.where(runs, ratio, -1.0))[: min(WORST, int(runs.sum()))]
    starts = np.cumsum([0, *(len(p.rows) for p in parts)])
    stacks: dict[int, dict[str, float]] = {}
    for part, start, end in zip(parts, starts, starts[1:], strict=False):
        mine = places[(places >= start) & (places < end)]
        if len(mine):
            stacks |= dict(zip(mine.tolist(), part.stacks(mine - start), strict=True))
    return [_worst_row(rows.iloc[i], stacks[int(i)]) for i in places]


def _worst_row(row: pd.Series, stack: dict[str, float]) -> dict[str, Any]:
    shape: dict[str, Any] = {c: float(row[c]) for c in SHAPES[row["op"]] if pd.notna(row[c])}
    if row["op"] in RUNS:
        shape = {"group": row["group"]} | shape
    if row["op"] == "bmm":
        shape = {"batch": max(float(np.nan_to_num(row["batch"])), 1.0)} | shape
    if row[LAYER_COLUMN]:
        shape = {"layer": row[LAYER_COLUMN]} | shape
    overhead, predicted = float(row["overhead_us"]), float(row["predicted_us"])
    kernel = sum(stack.values())
    visible = (predicted - overhead) / kernel if kernel > 0 else 0.0  # an eager launch's host hides some of it
    return {
        "device": row["device"],
        "op": row["op"],
        "dtype": row["dtype"],
        **shape,
        "measured_us": float(row["latency_us"]),
        "predicted_us": predicted,
        "ratio": float(predicted / row["latency_us"]),
        "implementation": row["implementation"],
        "kernel": row["kernel"],
        "harness": row["harness"],
        "stack_us": {HOST if row["op"] in RUNS else OVERHEAD: overhead}
        | {cause: us * visible for cause, us in stack.items()},
    }


def binding_causes(parts: Sequence[PredictedRows]) -> list[str]:
    """Return the part of its predicted time that takes most of each row of all parts, one part after another."""
    stacks = (stack for part in parts for stack in part.stacks(np.arange(len(part.rows))))
    return [max(stack, key=lambda cause: stack[cause], default="") for stack in stacks]


def row_stacks(model: TimingModel, kernels: Any, gpus: Any) -> list[dict[str, float]]:
    """Return the stacks of chosen kernels [us], causes that cost nothing left out; fields of shape (rows,)."""
    stacks: list[dict[str, float]] = []
    for start in range(0, len(kernels.ctas), WORST):
        some = jax.tree.map(lambda x, first=start: x[first : first + WORST], (kernels, gpus))
        count = len(some[0].ctas)
        some = jax.tree.map(lambda x, missing=WORST - count: np.pad(x, (0, missing), mode="edge"), some)
        timing = timings_of_rows(model, *some)  # always WORST rows, for one compiled program
        us = {cause: np.asarray(cycles / timing.clock_ghz) / 1e3 for cause, cycles in timing.stack().items()}
        stacks += [{cause: float(x[i]) for cause, x in us.items() if x[i] > 0} for i in range(count)]
    return stacks


def with_limit(stack: dict[str, float], slower: float) -> dict[str, float]:
    """Return a stack at the asked clock [us] with what the power limit adds that makes it ``slower`` times as long."""
    added = (slower - 1.0) * sum(stack.values())
    return stack | {HELD: float(added)} if slower > 1.0 + SHOWN else stack
