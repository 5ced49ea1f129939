"""The front as a table in the terminal: it fits, cuts no number, and respects NO_COLOR."""

import io

import pytest
from rich.console import Console

from dse.grid.result import SweepResult
from dse.hardware.presets import load_sheet
from dse.reports.sweep.answer import all_notes, question
from dse.reports.sweep.terminal import print_front
from tests.conftest import SMALL
from tests.reports.conftest import QUICK, swept


def printed(result: SweepResult, width: int = 100, colour: bool = False, rows: int = 12, notes: bool = False) -> str:
    """What is printed on a terminal of that width."""
    file, system = io.StringIO(), "standard" if colour else None
    console = Console(file=file, width=width, force_terminal=colour, color_system=system)
    print_front(result, console, rows, notes=notes)
    return file.getvalue()


def test_head_and_rows(result: SweepResult) -> None:
    text = printed(result)
    assert f"\n\nPareto set: {len(result.front)} of 45 designs (uncalibrated)\nbase: H100 SXM5 80GB" in text
    base = next(line for line in text.splitlines() if line.startswith("base "))
    assert base.split() == ["base", "512", "132", "3350", *base.split()[4:]]
    assert "ttft_ms" in text
    assert "mm2" in text
    front_of_five = printed(result, rows=5)
    assert f"5 of {len(result.front)} shown, spread over the front" in front_of_five
    assert len(front_of_five.splitlines()) < len(text.splitlines())


def test_question_and_numbers_come_first_and_notes_are_folded(result: SweepResult) -> None:
    text, told = printed(result, 400), all_notes(result)
    first, second = text.splitlines()[:2]
    assert first == question(result)
    assert second.startswith("  ") and any(c.isdigit() for c in second)
    assert f"; {len(told)} notes, which --notes prints." in text
    assert not [note for note in told if note in text]
    assert all(note in printed(result, 400, notes=True) for note in told if len(note) < 400)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_fits_the_window_and_cuts_nothing(result: SweepResult, maximised: SweepResult, width: int) -> None:
    for one in (result, maximised):
        text = printed(one, width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert "…" not in text


def test_many_axes_fit_a_hundred_columns() -> None:
    names = (
        "sm_count",
        "l2_mib",
        "dram_bandwidth_gbs",
        "tensor_clock_mhz",
        "l2_slice_bytes_per_cycle",
        "tensor_fma_bf16",
        "shared_load_latency_cycles",
        "dram_latency_ns",
        "l2_latency_ns",
    )
    base = load_sheet("h100_sxm").numbers()
    axes = {name: [base[name], base[name] * 2] for name in names}
    text = printed(swept(axes=axes, links={}, objectives=SMALL["objectives"][::2], **QUICK))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert text.count("\nbase  ") == 2  # the axes that have no room beside the rest are in a table below
    for name in names:
        assert name.rpartition("_")[2] in text
    assert "…" not in text


def test_differences_are_coloured_unless_asked_not_to(result: SweepResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32m" in printed(result, colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in printed(result, colour=True)
    assert "\x1b[31m" not in printed(result, colour=True)


def test_reasons_are_reported(impossible: SweepResult) -> None:
    text = printed(impossible)
    assert "Pareto set: 0 of 2 designs, 0 feasible (uncalibrated)" in text
    assert "infeasible: 2 constraint: die_mm2 <= 5" in text
    assert "No design is within die_mm2 <= 5: die_mm2 is" in text
