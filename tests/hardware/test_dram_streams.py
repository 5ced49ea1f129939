"""What boards sustain of their DRAM: shares of presets follow from public streams, each board's own ratio left out."""

from math import exp, log

import pytest

from dse.base.package_tables import read_table
from dse.hardware.presets import preset_sheet

STREAMS = read_table("process/dram_streams.csv")
WITHOUT = {"a40": "rtx_a6000", "a10": "rtx_a6000", "l40s": "rtx_4090", "l40": "rtx_4090", "l4": "rtx_4090"}
"""Board with inline ECC -> board of the same memory family and generation without."""

READS = {"a40": "a40", "a10": "a40", "l40s": "l40", "l40": "l40", "l4": "l40"}
"""Board -> whose stream that only reads, taken to have run without ECC."""


def share(preset: str, written: float, ecc: str) -> float:
    """The share of the sheet's bandwidth that a board's stream reached."""
    rows = (r for r in STREAMS if (r["preset"], float(r["write_share"]), r["ecc"]) == (preset, written, ecc))
    return float(next(rows)["share_of_sheet"])


def left_by_ecc(board: str) -> float:
    """What inline ECC leaves of a stream, by the other boards."""
    ratios = [share(a, 0.5, "inline") / share(b, 0.5, "none") for a, b in WITHOUT.items() if a != board]
    return exp(sum(map(log, ratios)) / len(ratios))


@pytest.mark.parametrize("board", WITHOUT)
def test_boards_with_inline_ecc_sustain_what_other_boards_say(board):
    stated = preset_sheet(board).numbers()["dram_sustained_fraction"]
    assert stated == pytest.approx(share(READS[board], 0.0, "none") * left_by_ecc(board), abs=5e-4)
    assert 0.77 < stated < 0.87


def test_inline_ecc_costs_about_a_sixth():
    assert [left_by_ecc(board) for board in WITHOUT] == pytest.approx([0.83] * len(WITHOUT), abs=0.02)


def test_streams_that_write_reach_less_than_those_that_read():
    """BabelStream on three GPUs with HBM: a written byte costs a sixth to a quarter more than one that is read."""
    azure = [row for row in STREAMS if "BabelStream" in row["source"]]
    for preset in ("a100_sxm_80gb", "h100_sxm", "h200"):
        mixes = {float(r["write_share"]): float(r["share_of_sheet"]) for r in azure if r["preset"] == preset}
        assert mixes[0.0] > mixes[0.333] > mixes[0.5]
        assert 0.15 < 2 * (mixes[0.0] / mixes[0.5] - 1) < 0.25
