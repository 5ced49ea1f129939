"""How sure the order of designs is: the chosen designs against the baseline and each other, and the front's members."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from dse.grid.result import SweepResult
from dse.reports.sweep.data import chosen_designs

BASELINE = "baseline"

ORDER = (
    "Order: intervals of ratios are learnt from pairs of real GPUs, both left out of a fit, by the attributes in which "
    "they differ; two designs cannot be told apart where either may be better by 10 % probability at least."
)


def chosen_ratios(result: SweepResult, among: bool = True) -> pd.DataFrame:
    """Return the chosen designs held against the baseline, and with ``among`` each against those before it.

    A row a pair and objective: ``design`` and ``against`` (letters, or BASELINE), ``objective``, ``ratio`` of the two
    [1], ``ratio_interval_80`` where 80 % of measured ratios lie, ``probability_better`` that the design is better, and
    ``unknown``, why there are none ("" where there are).
    """
    chosen = chosen_designs(result)
    first = len(result.measured_baseline)
    places = {row["letter"] or BASELINE: int(row["position"]) + first for _, row in chosen.iterrows()}
    pairs = [(two, one) for one, two in combinations(places, 2) if among or one == BASELINE]
    rows = []
    for design, against in pairs:
        one, two = places[against], places[design]
        for objective, errors in zip(result.space.objectives, result.ratio_errors, strict=True):
            probability = errors.probability_better(one, two)
            rows.append(
                {
                    "design": design,
                    "against": against,
                    "objective": objective.name,
                    "ratio": float(errors.values[two] / errors.values[one]),
                    "ratio_interval_80": errors.ratio_interval(one, two),
                    "probability_better": None if probability is None else float(probability),
                    "unknown": errors.reason,
                }
            )
    columns = ["design", "against", "objective", "ratio", "ratio_interval_80", "probability_better", "unknown"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def comparisons(result: SweepResult) -> list[dict[str, Any]]:
    """Return the rows of :func:`chosen_ratios` as JSON values."""
    rows = chosen_ratios(result).to_dict("records")
    return [{str(key): _rounded(value) for key, value in row.items()} for row in rows]


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_rounded(end) for end in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def front_note(result: SweepResult) -> list[str]:
    """Return how many members belong on the front more probably than not."""
    probabilities = result.probability_on_front
    if probabilities is None or len(probabilities) < 2:
        return []
    surely = int((probabilities >= 0.5).sum())
    return [
        f"Of {len(probabilities):,} Pareto designs {surely:,} belong on the front with a probability of one half or "
        "more; another member dominates the others at least as probably."
    ]


def on_front(result: SweepResult) -> dict[str, float]:
    """Return the probability of each chosen design, by its letter, that it belongs on the front; none if unknown."""
    probabilities = result.probability_on_front
    rows = chosen_designs(result).query("position >= 0")
    if probabilities is None:
        return {}
    return {row["letter"]: float(np.asarray(probabilities)[row["position"]]) for _, row in rows.iterrows()}
