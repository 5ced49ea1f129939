"""The page of a sweep that kept only its front: whole, and it says what is not there."""

from pathlib import Path

import pytest

from dse.grid.record import load_result
from dse.grid.sweep import sweep
from dse.reports.sweep.page import page_html
from tests.grid.trivial import trivial


@pytest.mark.slow
def test_a_page_without_points_says_so(tmp_path: Path) -> None:
    result = sweep(trivial(30_000, tmp_path), tmp_path / "out", keep="front")
    page = page_html(result)
    assert "Of 30,000 designs only the Pareto set, the best of each objective" in page
    assert "there is no points.parquet" in page
    assert page_html(load_result(tmp_path / "out")) == page
    for section in ("pareto", "places", "axes"):
        assert f'id="{section}"' in page, section


@pytest.mark.parametrize("keep", ["all", "front"])
def test_only_a_front_is_stated_to_be_one(keep: str, tmp_path: Path) -> None:
    assert ("no points.parquet" in page_html(sweep(trivial(1_000, tmp_path), keep=keep))) == (keep == "front")
