"""Intervals of predicted times: quantiles of errors on rows that no fit has seen, by what an error depends on.

An error depends on the kernel's implementation, its operator and type, the GPU, the protocol, and the regime of
the predicted time. Where a GPU was measured in this way, its own left-out families say how far off a prediction is;
anywhere else whole GPUs do that were left out of a fit.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.atomic_files import write_whole
from dse.base.errors import InputError
from dse.hardware.presets import find_preset
from dse.measured.regimes import by_regime, compute_bound, regime
from dse.timing.calibration import LEAST_ROWS, POWERED, UNSEEN
from dse.timing.error_quantiles import REGIMES, ErrorQuantiles, line_of

QUANTILES = (0.1, 0.5, 0.9)

KIND = ["implementation", "op", "dtype", "way"]
"""What tells apart the rows that intervals come from, beside the GPU and the regime."""

OUTWARD = 0.8
"""By this share of a row the outer quantiles of n rows move outward, so that the next row lies between them in 80 % of
cases (Weibull's plotting positions: of n + 1 gaps a tenth lies beyond each)."""

LEAST_OF_REGIME = 50
"""Rows that a regime of its own must rest on; with fewer, all regimes together serve. Chosen by halves of the left-out
families."""


LEAST_SHARE = 0.25
"""Share of the rows that counts at least, however few their families are."""


def errors_of(table: pd.DataFrame, predicted: np.ndarray, gpu: str = "") -> pd.DataFrame:
    """Return rows with ``gpu``, ``way`` (of measuring), ``where`` (regime of the predicted time) and ``error``, the log
    of predicted over measured; ``gpu``: whose they are, "" by the column ``device``."""
    names = {d: gpu or find_preset(str(d)) or str(d) for d in table["device"].unique()}
    where = regime(predicted, compute_bound(table))
    error = np.log(predicted / table["latency_us"].to_numpy())
    return table.assign(gpu=table["device"].map(names), way=ways(table), where=where, error=error)


def ways(table: pd.DataFrame) -> np.ndarray:
    """Return how each row was measured: its protocol, and whether in a loop long enough for the board's power."""
    harness = table["harness"].astype(str).to_numpy(object)
    if "power_w" not in table:
        return harness
    return np.where(pd.to_numeric(table["power_w"], errors="coerce") > 0, harness + POWERED, harness)


def quantiles(error: np.ndarray, families: Iterable[str]) -> tuple[float, float, float]:
    """Return the 10, 50 and 90 % quantiles of errors, the outer ones moved outward for the count behind them.

    Rows of one family go together, but not wholly: the geometric mean of rows and families counts, or LEAST_SHARE of
    the rows.
    """
    count = max(np.sqrt(len(error) * len(set(families))), LEAST_SHARE * len(error))
    low, middle, high = np.quantile(error, (max(0.1 - OUTWARD / count, 0.0), 0.5, min(0.9 + OUTWARD / count, 1.0)))
    return float(low), float(middle), float(high)


def seen(
    rows: pd.DataFrame, ways_fitted: Iterable[str], gpus_fitted: Iterable[str], unfitted: Sequence[str] = ()
) -> tuple[ErrorQuantiles, ...]:
    """Return the intervals of measured GPUs, from ``rows`` of :func:`errors_of` with ``implementation`` and ``out``.

    Of what was fitted (under these protocols, on these GPUs, but for types ``unfitted``) the left-out families
    (``out``) count, of anything else all rows. For each GPU, and of all together (gpu "") where there are several: of
    all regimes, and of each by the rows that tell of it.
    """
    fitted = rows["way"].isin(list(ways_fitted)) & rows["gpu"].isin(list(gpus_fitted))
    rows = rows.assign(fitted=fitted & ~rows["dtype"].isin(list(unfitted)))
    found: list[ErrorQuantiles] = []
    for (implementation, op, dtype, way), part in rows[rows["out"] | ~rows["fitted"]].groupby(KIND):
        groups = [(str(gpu), mine) for gpu, mine in part.groupby("gpu")]
        for gpu, mine in groups + ([("", part)] if len(groups) > 1 else []):
            for name, mask in _regimes(mine["where"].to_numpy()):
                some = mine[mask]
                key = (str(implementation), str(op), str(dtype), name, len(some))
                ends = quantiles(some["error"].to_numpy(), some["family"])
                found.append(ErrorQuantiles(*key, *ends, gpu, str(way), bool(mine["fitted"].any())))
    return tuple(found)


def unseen(
    transfers: Sequence[pd.DataFrame], implementation: str, op: str, dtype: str, way: str = "", fitted: bool = True
) -> tuple[ErrorQuantiles, ...]:
    """Return the intervals of GPUs that no fit has seen, from the errors on each of several (``transfers``)."""
    regimes = [_regimes(transfer["where"].to_numpy()) for transfer in transfers]
    parts: dict[str, list[np.ndarray]] = {}
    for transfer, masks in zip(transfers, regimes, strict=True):
        for name, mask in masks:
            parts.setdefault(name, []).append(transfer["error"].to_numpy()[mask])
    enough = min(len(transfers), 2)  # GPUs that a regime of its own must have been seen on
    return tuple(
        ErrorQuantiles(
            implementation, op, dtype, name, sum(map(len, errors)), *_of_another(errors), UNSEEN, way, fitted
        )
        for name, errors in parts.items()
        if len(errors) >= enough
    )


def coverage_by_others(transfers: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return what share of each GPU's rows [%] lies within the interval that the other GPUs' errors give it: what an
    interval of :func:`unseen` is worth. ``transfers``: rows of one GPU each, of :func:`errors_of`."""
    shares = {}
    for i, transfer in enumerate(transfers):
        known = {r.regime: r for r in unseen([t for j, t in enumerate(transfers) if j != i], "", "", "")}
        told = [known.get(where, known[REGIMES[0]]) for where in transfer["where"]]
        low, high = np.array([(r.q10, r.q90) for r in told]).T
        error = transfer["error"].to_numpy()
        shares[str(transfer["gpu"].iloc[0])] = 100 * float(((error >= low) & (error <= high)).mean())
    return shares


def _of_another(parts: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """The quantiles of a further GPU's errors, from those of D GPUs that count alike.

    Pooled errors vary by tau^2 (1 - 1/D) + sigma^2, those of a further GPU about their mean by tau^2 (1 + 1/D) +
    sigma^2 (tau between GPUs, sigma within one): the quantiles are widened by the root of the ratio.
    """
    error = np.concatenate(parts)
    weight = np.concatenate([np.full(len(p), 1.0 / (len(p) * len(parts))) for p in parts])
    order = np.argsort(error)
    low, middle, high = np.interp(QUANTILES, np.cumsum(weight[order]) - weight[order] / 2, error[order])
    wider, count = 1.0, len(parts)
    if count > 1:
        between = float(np.var([p.mean() for p in parts], ddof=1))
        within = float(np.mean([p.var() for p in parts]))
        wider = np.sqrt((between * (1 + 1 / count) + within) / max(between * (1 - 1 / count) + within, 1e-12))
    return float(middle + wider * (low - middle)), float(middle), float(middle + wider * (high - middle))


def _regimes(where: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """All rows, and those that tell of each regime: its own where they are enough, else of all such regimes."""
    every = list(by_regime(where))
    few = [name for name, mask in every[1:] if mask.sum() < LEAST_OF_REGIME]
    rest = np.isin(where, few)
    told = [(name, rest if name in few else mask) for name, mask in every[1:] if not rest.all()]
    return every[:1] + [(name, mask) for name, mask in told if mask.sum() >= LEAST_ROWS]


def rewrite(path: Path, error_quantiles: Iterable[ErrorQuantiles]) -> None:
    """Put residuals in place of those in a calibration's TOML; nothing else of the file changes."""
    text = Path(path).read_text(encoding="utf-8")
    text = re.sub(r"\nresiduals = \[\n(?: [^\n]*\n)*\]\n", "\n", text)
    if "\n[harnesses]" not in text:
        raise InputError(f"{path}: no table [harnesses]; give a file that 'dse calibrate timing -o' wrote")
    head, rest = text.split("\n[harnesses]", 1)
    write_whole(path, f"{head.rstrip()}\n\n{listed(error_quantiles)}\n[harnesses]{rest.rstrip()}\n")


def listed(error_quantiles: Iterable[ErrorQuantiles]) -> str:
    """Return residuals as the array of a TOML, one a line."""
    return "\n".join(["residuals = [", *(f"  {line_of(r)}," for r in error_quantiles), "]"]) + "\n"
