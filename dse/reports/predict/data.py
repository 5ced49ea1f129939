"""The data of the figures of ``dse predict``."""

import numpy as np
import pandas as pd

from dse.prediction.merits import inlier_ratio
from dse.prediction.predict import ranked
from dse.prediction.transfer import Transfer

CURVE = np.linspace(0.0, 100.0, 201)
"""Thresholds of the inlier curve [%]."""


def inlier_curves(transfer: Transfer) -> pd.DataFrame:
    """Return the inlier ratio [%] on the target over all thresholds: a row a ``series`` and threshold.

    ``kind``: predictor, baseline or reference. Series: the predictor chosen without the target, the one of least E_out,
    the best of each mode, and the baselines.
    """
    shown = {"chosen": transfer.chosen, "least E_out": transfer.least_e_out, "best in hindsight": transfer.hindsight}
    by_predictor: dict[tuple[str, str], list[str]] = {}
    for role, predictor in shown.items():
        by_predictor.setdefault((predictor.name, predictor.mode), []).append(role)
    series = [
        (
            f"{name}, {mode} ({', '.join(roles)})",
            "predictor",
            next(j.errors for j in transfer.scored if (j.name, j.mode) == (name, mode)),
        )
        for (name, mode), roles in by_predictor.items()
    ]
    series += [(b.name, "baseline" if b.fair else "reference", b.errors) for b in transfer.baselines]
    rows = [
        {"series": name, "kind": kind, "threshold": t, "inliers": inlier_ratio(errors, t)}
        for name, kind, errors in series
        for t in CURVE
    ]
    return pd.DataFrame(rows)


def predicted_against_measured(transfer: Transfer) -> pd.DataFrame:
    """Return each row of the target by the predictor chosen without it: ``shape``, ``measured``, ``predicted`` and
    ``analytical``, what the model predicts alone; in the quantity's unit, us or W."""
    test, chosen = transfer.test, transfer.chosen
    return pd.DataFrame(
        {
            "shape": test.frame["shape"],
            "measured": test.y / test.per_unit,
            "predicted": chosen.fitted.many(test.rows(chosen.mode).x) / test.per_unit,
            "analytical": test.analytical / test.per_unit,
        }
    )


def ranking(transfer: Transfer) -> pd.DataFrame:
    """Return the predictors by E_out, a row each: errors [%], inliers on the target, rank correlation."""
    rows = [
        {
            "predictor": j.name,
            "mode": j.mode,
            "E_out": j.e_out["error"],
            "families out": j.e_family,
            "devices or sizes out": j.e_transfer,
            "target": j.target["error"],
            "bias": j.target["bias"],
            "Spearman": j.target["spearman"],
            "Kendall": j.target["kendall"],
            **{f"I({t})": ratio for t, ratio in j.target["inliers"].items()},
            "fit [s]": j.fit_seconds,
        }
        for j in ranked(transfer)
    ]
    return pd.DataFrame(rows)


def baseline_table(transfer: Transfer) -> pd.DataFrame:
    """Return the baselines on the target, a row each."""
    rows = [
        {
            "baseline": b.name,
            "target": b.target["error"],
            "bias": b.target["bias"],
            "Spearman": b.target["spearman"],
            "Kendall": b.target["kendall"],
            **{f"I({t})": r for t, r in b.target["inliers"].items()},
        }
        for b in transfer.baselines
    ]
    return pd.DataFrame(rows)
