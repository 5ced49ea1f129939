"""A host's counters as features: exports of Nsight Compute of the same shapes that the target ran.

Counts alone (metrics that end in .sum) are taken: they add up over the kernels of an operation, where rates do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from dse.base.errors import InputError
from dse.base.printed_numbers import printed_number
from dse.measured.nsight_export import TIME as DURATION
from dse.measured.nsight_export import ProfiledLaunch, operations, read_export
from dse.prediction.learning_rows import LearningRows
from dse.prediction.merits import group_folds, merits
from dse.prediction.predictors import Rows, left_out
from dse.prediction.quantities import TIME
from dse.prediction.table import shape_names
from dse.prediction.transfer import MIN_ROWS, MOST_FOLD_ROWS, predictor_modes

COUNT = ".sum"
"""End of the names of metrics that count."""

TREES = 128
"""Trees of the study's forest."""


@dataclass(frozen=True)
class Counters:
    """Counts of a host's launches: ``names``, and by operator, data type and shape their values (names,) and the time
    [us], means of what the host ran more than once."""

    path: str
    device: str
    names: tuple[str, ...]
    of: Mapping[tuple[str, str, str], tuple[np.ndarray, float]]

    @classmethod
    def read(cls, path: Path) -> "Counters":
        """Read an export; raises InputError where no count stands with every launch that has a shape."""
        frame, every = read_export(path), operations(path)
        shape = shape_names(frame)
        counts = [_counts(launches) for launches, _ in every]
        kept = np.flatnonzero(shape != "")
        common = set.intersection(*(set(counts[i]) for i in kept)) if len(kept) else set()
        names = tuple(sorted(name for name in common if len({counts[i][name] for i in kept}) > 1))
        if not names:
            raise InputError(
                f"{path}: no metric that ends in {COUNT} stands with every kernel of a known shape and varies; profile "
                "with --set full, or --metrics smsp__inst_executed.sum,dram__bytes_read.sum ..."
            )
        times = frame["latency_us"].to_numpy(float)
        found: dict[tuple[str, str, str], list[np.ndarray]] = {}
        for i in kept:
            key = (str(frame["op"].iloc[i]), str(frame["dtype"].iloc[i]), str(shape.iloc[i]))
            found.setdefault(key, []).append(np.array([*(counts[i][name] for name in names), times[i]]))
        means = {key: np.mean(values, axis=0) for key, values in found.items()}
        device = str(frame["device"].iloc[kept[0]])
        return cls(str(path), device, names, {key: (m[:-1], float(m[-1])) for key, m in means.items()})


def _counts(launches: Any) -> dict[str, float]:
    """Return the counts of an operation: those that each of its launches has, added up."""
    each = [_numbers(launch) for launch in launches]
    common = set.intersection(*map(set, each))
    return {name: sum(one[name] for one in each) for name in common}


def _numbers(launch: ProfiledLaunch) -> dict[str, float]:
    found = {}
    for name, cell in launch.metrics.items():
        if not name.endswith(COUNT) or name == DURATION:
            continue
        try:
            value = printed_number(cell, launch.comma)
        except ValueError:
            continue
        if isfinite(value):
            found[name] = value
    return found


def counter_study(
    groups: Mapping[tuple[str, str], LearningRows], counters: Counters, target: str, predictors: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return E_out on shape families left out, with a host's counters among the features and without them, and notes
    of what was not judged. Times have the host's time of the same shape as a feature in both cases; watts have counts
    of a microsecond."""
    scores, notes = [], []
    for (op, dtype), rows in groups.items():
        own = rows.of(target)
        with_counts, names = with_counters(own, counters)
        if len(with_counts.y) < MIN_ROWS or with_counts.frame["family"].nunique() < 2:
            notes.append(
                f"--counters {counters.path}: {op} {dtype}: not judged: it holds the shapes of {len(with_counts.y)} of "
                f"the target's {len(own.y)} rows; {MIN_ROWS} rows of two families are needed"
            )
            continue
        sample = with_counts.sample(MOST_FOLD_ROWS)
        for used in (len(names), 0):
            scores += _scored(sample, used, len(names), predictors, {"op": op, "dtype": dtype})
    order = sorted(scores, key=lambda row: (row["op"], row["dtype"], row["e_out_families"]["error"]))
    return order, notes


def with_counters(rows: LearningRows, counters: Counters) -> tuple[LearningRows, tuple[str, ...]]:
    """Return the rows whose shape a host's counters are of, with features before the model's own prediction: of times
    the host's time [cycle of the target] and its counts, of watts its counts of a microsecond."""
    keys = zip(rows.frame["op"], rows.frame["dtype"], shape_names(rows.frame), strict=True)
    known = [counters.of.get((str(op), str(dtype), shape)) for op, dtype, shape in keys]
    here = rows.take(np.flatnonzero([one is not None for one in known]))
    found = [one for one in known if one is not None]
    counts = np.array([one[0] for one in found]).reshape(len(found), len(counters.names))
    us = np.array([one[1] for one in found])
    more = [us * here.per_unit, counts] if here.quantity is TIME else [counts / us[:, None]]
    names = counters.names
    return replace(here, x=np.column_stack([here.x[:, :-1], *more, here.x[:, -1]])), names


def _scored(
    rows: LearningRows, used: int, every: int, predictors: tuple[str, ...], labels: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return a row a predictor and mode; ``used``: how many of ``every`` counter are features."""
    x = rows.x if used else np.delete(rows.x, np.s_[-1 - every : -1], axis=1)
    fold, scores = group_folds(rows.frame["family"].to_numpy(), 5), []
    for name, mode in predictor_modes(predictors, rows.quantity):
        learned = Rows(x[:, :-1] if mode == "plain" else x, rows.y)
        predicted, _ = left_out(name, learned, fold, mode == "residual", TREES if name == "forest" else 0)
        row = labels | {"predictor": name, "mode": mode, "counters": used, "rows": len(rows.y)}
        scores.append(row | {"e_out_families": merits(predicted, learned.y)})
    return scores
