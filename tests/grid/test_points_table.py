"""The table of every design: written in grid order while later portions are evaluated."""

from pathlib import Path

import pytest

from dse.evaluate.platform import PLATFORMS
from dse.grid.store import PARTIAL
from dse.grid.sweep import sweep
from tests.grid.trivial import trivial, with_chunks


@pytest.fixture(autouse=True)
def many_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())


def test_it_grows_before_the_last_portion_is_evaluated(tmp_path: Path) -> None:
    space, grown = trivial(10_000, tmp_path), []
    partial = tmp_path / "out" / f"points.parquet{PARTIAL}"
    result = sweep(space, tmp_path / "out", lambda count: grown.append(partial.exists()), keep="all")
    assert not grown[0] and grown[-1]
    assert not partial.exists()
    whole = sweep(space, keep="all")
    assert result.points().equals(whole.points())


def test_an_interruption_leaves_no_part_of_it_and_a_resumed_sweep_has_all(tmp_path: Path) -> None:
    space, out, counts = trivial(10_000, tmp_path), tmp_path / "out", []
    partial = out / f"points.parquet{PARTIAL}"
    began = []

    def stop(count: int) -> None:
        counts.append(count)
        began.append(partial.exists())
        if began[-1] and len(counts) > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(space, out, stop, keep="all")
    assert began[-1]
    assert not partial.exists() and not (out / "points.parquet").exists()
    sweep(space, out, keep="all", resume=True)
    sweep(space, tmp_path / "alone", keep="all")
    assert (out / "points.parquet").read_bytes() == (tmp_path / "alone" / "points.parquet").read_bytes()
