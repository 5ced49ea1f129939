"""Designs made on a device: rows hold every design once, and columns are those of the host to the bit."""

from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from dse.grid import device_designs
from dse.grid.designs import Grid
from dse.grid.device_designs import DeviceGrid, Rows, too_many
from dse.space import links
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL

LINKED = {
    "axes": {
        "sm_count": {"from": 60, "to": 150, "step": 15},
        "dram_bandwidth_gbs": [1675, 2010.5, 3350],
        "tensor_clock_mhz": {"from": 1000, "to": 1900, "step": 70},
        "l2_mib": [20, 40, 50],
    },
    "links": {
        "boost_clock_mhz": "tensor_clock_mhz * base.boost_clock_mhz / base.tensor_clock_mhz",
        "l2_slices": "round(sm_count * dram_bandwidth_gbs / 1000)",
        "l2_clock_mhz": "base.l2_clock_mhz",
    },
}


@pytest.fixture(scope="module")
def space() -> Space:
    return space_from_mapping(SMALL | LINKED, "here", "linked")


def made(grid: DeviceGrid, rows: Rows) -> dict[str, np.ndarray]:
    """The columns of rows (rows, size)."""
    columns: Any = jax.jit(lambda first: grid.columns(grid.digits(first)))(rows.digits)
    return {name: np.asarray(values) for name, values in columns.items()}


@pytest.mark.parametrize(
    "common", [(), ("l2_mib",), ("sm_count", "tensor_clock_mhz"), ("dram_bandwidth_gbs", "l2_mib")]
)
@pytest.mark.parametrize("size", [1, 32, 1024])
def test_rows_hold_every_design_once_with_its_columns(space: Space, common: tuple[str, ...], size: int) -> None:
    grid, host = DeviceGrid(space, common, size), Grid(space)
    cuts = [0, 1, space.size // 3, space.size - 2, space.size]
    parts = [grid.rows(start, stop) for start, stop in pairwise(cuts)]
    assert [int(part.count.sum()) for part in parts] == np.diff(cuts).tolist()
    numbers, expected = [], host.columns(host.digits(0, space.size), space.size)
    for part in parts:
        inside = np.arange(size) < part.count[:, None]
        numbers.append(grid.numbers((part.position[:, None] + np.arange(size))[inside]))
        for name, values in made(grid, part).items():
            np.testing.assert_array_equal(values[inside], expected[name][numbers[-1]].astype(np.float32), name)
            if name in common:
                assert np.ptp(np.where(inside, values, values[:, :1]), axis=1).max() == 0.0
    assert sorted(np.concatenate(numbers)) == list(range(space.size))


@pytest.mark.parametrize("common", [("sm_count",), ("l2_mib", "dram_bandwidth_gbs")])
def test_a_row_s_combination_is_that_of_its_designs(space: Space, common: tuple[str, ...]) -> None:
    grid = DeviceGrid(space, common, 32)
    rows, every = grid.rows(0, space.size), grid.combinations(space, common)
    columns = made(grid, rows)
    for name in common:
        np.testing.assert_array_equal(every[name][rows.combination], columns[name][:, 0])


def test_scattered_rows_are_rows_of_the_grid(space: Space) -> None:
    grid = DeviceGrid(space, ("sm_count",), 32)
    every, some = grid.rows(0, space.size), grid.scattered(space.size, 20)
    assert 15 <= len(some.count) <= 20
    places = np.searchsorted(every.position, some.position)
    for name, values in vars(some).items():
        np.testing.assert_array_equal(getattr(every, name)[places], values, name)


def test_a_grid_beyond_32_bits_is_counted() -> None:
    axes = {"dram_bandwidth_gbs": {"from": 1000, "to": 5999, "step": 1}, "sm_count": {"from": 1, "to": 200, "step": 1}}
    axes |= {"tensor_clock_mhz": {"from": 500, "to": 2499, "step": 1}, "l2_mib": {"from": 1, "to": 100, "step": 1}}
    space = space_from_mapping(SMALL | {"axes": axes, "links": {}}, "here", "large")
    grid, start = DeviceGrid(space, (), 512), space.size - 1000
    rows = grid.rows(start, space.size)
    assert space.size == 2 * 10**11
    expected = space.at(start + np.arange(512))
    for name, values in made(grid, rows).items():
        np.testing.assert_array_equal(values[0], expected[name].astype(np.float32))
    assert grid.numbers(rows.position).tolist() == [start, start + 512]


def test_links_of_many_combinations_have_no_table(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    assert too_many(space) == []
    monkeypatch.setattr(device_designs, "MOST_COMBINATIONS", 15)
    assert links.count_of(links.deciding(space.axes, space.links, ["l2_slices"])) == 21
    assert too_many(space) == ["l2_slices"]
