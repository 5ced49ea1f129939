"""Novelty: shares of a widening by hand, no class judged by its own, and what is shipped is what is computed."""

import numpy as np
import pandas as pd
import pytest

from dse.timing.novelty import GENERATION, GPU, KINDS, MEMORY_TYPE, shares
from experiments.common.modules import EXPERIMENTS, experiment

FOLDER = "023_novelty"
widening = experiment(FOLDER, "widening.py")
ERRORS = pd.read_parquet(EXPERIMENTS / FOLDER / "class_errors.parquet")


def case(gpu, spread, alone=False, memory_type="", generation=""):
    """A case of products whose errors are normal with a spread."""
    error = spread * np.random.default_rng(len(gpu)).standard_normal(4000)
    rows = pd.DataFrame({"gpu": gpu, "where": "compute_above_50us", "error": error})
    return widening.Case("products", gpu, alone, memory_type, generation, rows)


def by_hand(newer):
    alone = [case(gpu, 0.1, alone=True) for gpu in ("a100_sxm_80gb", "h100_sxm", "h200")]
    return [*alone, case("l40s", newer, generation="Ada"), case("t4", newer, generation="Turing")]


def test_shares_by_hand():
    found = widening.shares_of(by_hand(0.2))
    assert found[GPU] == pytest.approx(1, abs=0.15)
    assert found[GPU] + found[GENERATION] == pytest.approx(4, rel=0.15)  # twice as wide
    assert found[MEMORY_TYPE] == 0
    assert widening.shares_of(by_hand(0.1))[GENERATION] < 0.2


def test_no_class_is_judged_by_a_widening_that_it_has_set():
    calm = by_hand(0.1)
    wild = [case("t4", 5.0, generation="Turing") if one.gpu == "t4" else one for one in calm]
    (before,) = (x for x in widening.judged(calm) if x.case.gpu == "t4")
    (after,) = (x for x in widening.judged(wild) if x.case.gpu == "t4")
    assert after.half == before.half
    assert after.within < 0.1 < before.within


def test_classes_never_seen_hold_what_their_intervals_say():
    found = pd.DataFrame(
        [(x.case.kind, widening.of_class(x.case), x.within) for x in widening.judged(widening.cases(ERRORS))],
        columns=["kind", "class", "within"],
    )
    classes = found.groupby(["kind", "class"])["within"].mean().groupby("kind")
    for kind, share, count in zip(classes.groups, classes.mean(), classes.size(), strict=True):
        low, high = (0.75, 0.85) if count >= 3 else (0.7, 0.9)
        assert low <= share <= high, kind
    assert set(classes.groups) == set(KINDS)


def test_what_is_shipped_is_what_the_errors_say():
    found = widening.shares_of(widening.cases(ERRORS))
    assert shares() == {kind: pytest.approx(value, abs=6e-4) for kind, value in found.items()}


def test_the_page_on_accuracy_tells_the_experiments_figures():
    readme = (EXPERIMENTS / FOLDER / "README.md").read_text(encoding="utf-8").partition("## Result")[2]
    table = [line for line in readme.splitlines() if line.startswith("|")][:5]
    assert all(line in (EXPERIMENTS.parent / "docs" / "accuracy.md").read_text(encoding="utf-8") for line in table)
