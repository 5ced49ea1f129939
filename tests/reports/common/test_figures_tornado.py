"""Panels of bars: where they stand, how high the figure is, whose axis has a title."""

import pytest

from dse.reports.common.figures_tornado import BETWEEN, Tornado, legend_above


def test_panels_fill_rows_and_only_the_lowest_have_a_title() -> None:
    tornado = Tornado(["a", "b", "c"], columns=2, of_panels=100, top=50)
    assert [tornado.place(n) for n in range(3)] == [{"row": 1, "col": 1}, {"row": 1, "col": 2}, {"row": 2, "col": 1}]
    assert tornado.height == 2 * (100 + BETWEEN) + 50
    figure = tornado.figure()
    for panel in range(3):
        tornado.scaled(figure, panel, "change [%]", 5.0)
    finished = tornado.finished(figure, ["x", "y"])
    titles = [finished.layout[name].title.text for name in ("xaxis", "xaxis2", "xaxis3")]
    assert titles == [None, "change [%]", "change [%]"]  # nothing stands below the second
    assert finished.layout.height == tornado.height
    assert list(finished.layout.yaxis.categoryarray) == ["x", "y"]


def test_one_panel_takes_the_whole_row() -> None:
    assert Tornado(["a"], columns=3, of_panels=100, top=0).rows == 1


def test_a_legend_stands_as_far_above_the_panels_in_any_figure() -> None:
    low, high = (legend_above(height, 100)["y"] - 1 for height in (400, 900))
    assert low * 250 == pytest.approx(high * 750) == pytest.approx(26)
