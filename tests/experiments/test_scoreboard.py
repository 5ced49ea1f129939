"""Experiment 020: what a line of the scoreboard says of rows; it finds what it takes from other experiments."""

import numpy as np
import pandas as pd
import pytest

from experiments.common.implementations import OVER, told
from experiments.common.modules import experiment


@pytest.fixture(scope="module")
def board():
    return experiment("020_scoreboard")


def rows(**changes) -> pd.DataFrame:
    """Three left-out products of an A100 and one that was fitted: 10, 20, 0 and 50 % off."""
    base = {
        "table": "aiconfigurator__gemm",
        "op": "gemm",
        "dtype": "bf16",
        "gpu": "a100_sxm_80gb",
        "implementation": "matrix",
        "latency_us": [10.0, 100.0, 100.0, 100.0],
        "predicted_us": [11.0, 80.0, 100.0, 150.0],
        "sheet_us": 5.0,
        "three_us": [10.0, 90.0, 110.0, 100.0],
        "out": [True, True, True, False],
    }
    return pd.DataFrame(base | changes)


def test_lines_are_of_left_out_rows_and_of_their_regime(board):
    found = {line.name: line for line in board.seen(rows())}
    every, long = found["products bf16, A100"], found["products bf16 from 50 us, A100"]
    assert (every.count, long.count) == (3, 2)
    assert every.error == pytest.approx(10.0)
    assert long.error == pytest.approx(10.0)
    assert every.three == pytest.approx(20 / 3)
    assert long.sheet == pytest.approx(95.0)
    assert found["products bf16, H100"].count == 0


def test_fp8_was_fitted_nowhere_and_counts_whole(board):
    found = {line.name: line for line in board.seen(rows(dtype="fp8"))}
    assert found["products fp8, as the rows are (aiconfigurator)"].count == 4


@pytest.mark.parametrize(
    ("error", "asked", "verdict"),
    [
        (4.9, (5.5, 5), "aim met"),
        (5.5, (5.5, 5), "met"),
        (5.51, (5.5, 5), "**missed**"),
        (7.9, (8, np.nan), "met"),
        (99.0, (np.nan, np.nan), ""),
    ],
)
def test_a_bound_is_not_rounded_away(board, error, asked, verdict):
    assert board.Line("x", 1, error, asked).verdict() == verdict


def test_a_line_as_markdown(board):
    line = board.Line("x", 12, 4.94, (5.5, 5.0), 50.0)
    assert line.markdown() == "| x | 12 | **4.9** | 5.5 / 5 | aim met | 50.0 |  |"


@pytest.mark.parametrize(
    ("folder", "file", "names"),
    [
        ("012_timing_calibration", "run.py", ("load", "transfer", "GRAPHS", "OTHERS", "MOST_SHARED")),
        ("012_timing_calibration", "others.py", ("layer",)),
        ("012_timing_calibration", "interval_coverage.py", ("inside", "never_fitted", "by_folds", "share", "LEAST")),
        ("013_attention", "run.py", ("with_others", "PREFILL", "DECODE", "TABLES", "DEVICES")),
        ("014_vector_kernels", "run.py", ("rows_of", "unseen", "SOURCES")),
    ],
)
def test_what_other_experiments_lend_is_there(board, folder, file, names):
    module = board.experiment(folder, file)
    assert all(hasattr(module, name) for name in names)


def test_what_other_commands_left_is_read_by_the_words_of_their_heads(board):
    """Every section has lines; a line's numbers are those of the README's row."""
    other = board.experiment("020_scoreboard", "elsewhere.py")
    for title, _, _, lines in other.SECTIONS:
        told = list(lines())
        assert told, title
        assert all(x.rows > 0 and 0 < x.error < 100 for x in told), title
    decode = next(x for x in other.attention() if x.name == "decode, B200-SXM")
    row = next(
        r for r in other.table(other.ATTENTION, "together") if (r["operator"], r["GPU"]) == ("attn_decode", "B200-SXM")
    )
    assert (decode.rows, decode.error) == (int(row["left out"]), float(row["left out, %"]))
    assert decode.asked == (9.0, 7.0)


def test_only_boards_and_kinds_that_were_asked_for_have_a_bound(board):
    other = board.experiment("020_scoreboard", "elsewhere.py")
    asked = {x.name: x.asked[0] for x in other.power()}
    assert {name: bound for name, bound in asked.items() if bound == bound} == {
        "H200": 14.0,
        "B200": 14.0,
        "A100 PCIe": 10.0,
    }
    assert {new for new, *_ in other.novelty()} == {"GPU", "memory type", "generation"}


def test_a_roofline_that_no_fit_finds_is_told_without_a_number(board):
    """Its line in the README says so, and the scoreboard then has none."""
    assert (told(99.94), told(145.2)) == ("99.9", OVER)
    other = board.experiment("020_scoreboard", "elsewhere.py")
    rows = other.table(other.ATTENTION, "together")
    told_rows = list(other.attention())
    assert any(row["roofline, %"] == OVER for row in rows)
    assert [np.isnan(x.three) for x in told_rows] == [row["roofline, %"] == OVER for row in rows]


def test_what_other_readmes_tell_is_made_anew_behind_what_stands(board):
    text = "# Scoreboard\n\n## Layers\n\n| a |\n\n## Mixtures of experts\n\n| old |\n"
    assert board.before_elsewhere(text) == ["# Scoreboard", "", "## Layers", "", "| a |"]
