"""The designs of a grid by number are those of the space."""

from typing import Any

import numpy as np
import pytest

from dse.grid.designs import Grid
from dse.space import designs
from dse.space.space import Space, space_from_mapping


def linked(small: dict[str, Any]) -> Space:
    small["links"] |= {"l2_mib": "sm_count / 3 + dram_bandwidth_gbs / 100", "boost_clock_mhz": "base.boost_clock_mhz"}
    return space_from_mapping(small, "here", "linked")


@pytest.mark.parametrize(("start", "stop"), [(0, 45), (7, 8), (3, 31), (44, 45)])
def test_the_grid_is_the_spaces_grid(small: dict[str, Any], start: int, stop: int) -> None:
    space = linked(small)
    expected, grid = designs.with_links(space, space.at(np.arange(start, stop))), Grid(space)
    columns = grid.columns(grid.digits(start, stop), stop - start)
    assert list(columns) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(columns[name], values)


def test_a_link_of_many_axes_has_no_table(small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert Grid(linked(small))._tables
    monkeypatch.setattr("dse.grid.designs.TABLE", 4)
    assert not Grid(linked(small))._tables
    test_the_grid_is_the_spaces_grid(small, 3, 31)
