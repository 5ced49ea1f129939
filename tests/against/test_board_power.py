"""Board power as NVML measured it: an H200's shape families that no fit has seen, and boards that none has."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dse.measured.board_watts import watts_of
from dse.power.board import BoardPower, left_out_errors

ROOT = Path(__file__).parents[2]
COMPACT = "compact physical fit"
"""The baseline with numbers of its own for one board."""

MODULES = ("devices", "passes", "rows", "judged", "boards", "several")


@pytest.fixture(scope="module")
def experiment() -> Iterator[SimpleNamespace]:
    """The experiment's modules by name, forgotten afterwards: other experiments may use the same names."""
    sys.path.insert(0, str(ROOT / "experiments" / "006_board_power"))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    sys.path.pop(0)
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture(scope="module")
def judged(experiment):
    """Rows, shipped model's watts, and the rows left out of the fit."""
    rows = experiment.rows.power_rows()
    return rows, watts_of(BoardPower.from_table(), rows), experiment.rows.masks(rows)


@pytest.mark.slow
def test_held_out_board_power(experiment, judged):
    """The bars are a median of 12 % and 18 % in the mean; it must beat a constant and the limit, too."""
    rows, watts, kinds = judged
    held_out = experiment.judged.scores(rows, watts, kinds["held out"])
    assert held_out["rows"] == 202
    assert held_out["median"] <= 12.0
    assert held_out["mean"] <= 18.0
    assert 0.9 < held_out["bias"] < 1.1
    for name, other in experiment.judged.baselines(rows).items():
        if name != COMPACT:
            assert held_out["mean"] < experiment.judged.scores(rows, other, kinds["held out"])["mean"] - 1.5, name


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="14.6 % of a fit to several boards, 13.4 of one to an H200's own rows")
def test_a_compact_fit_to_the_board_s_own_rows_is_beaten(experiment, judged):
    """Asked for and not reached since several boards share the fit (experiments/006_board_power)."""
    rows, watts, kinds = judged
    own = experiment.judged.baselines(rows)[COMPACT]
    ours, theirs = (experiment.judged.scores(rows, one, kinds["held out"])["mean"] for one in (watts, own))
    assert ours < theirs - 1.5


@pytest.mark.slow
def test_the_stated_uncertainty_is_that_of_boards_left_out(experiment):
    found, stated = experiment.judged.statistics(experiment.several.left_out()), left_out_errors()
    assert found["rows"] == stated["rows"]
    for name in ("mean", "q50", "q90", "low", "high"):
        assert found[name] == pytest.approx(stated[name], rel=0.03), name


@pytest.mark.slow
def test_sustained_times_at_the_limit(experiment):
    """GEMMs measured short and sustained, at the limit, families left out: the clock falls as the model says."""
    pairs = experiment.rows.pair_rows()
    at_limit = (pairs.table.power_w > 670).to_numpy() & pairs.table.held_out.to_numpy()
    laws = experiment.judged.slowdowns(BoardPower.from_table(), pairs)
    error = {name: np.abs(law / laws["measured"] - 1)[at_limit].mean() for name, law in laws.items()}
    assert at_limit.sum() > 25
    assert error["model"] < 0.039 < error["none"]
