"""Designs of a space as columns: the baseline, one axis at a time, and those that pictures show."""

from math import gcd
from typing import Any

import numpy as np
import pytest

from dse.space.designs import SAMPLE, baseline, of_table, one_axis_at_a_time, sample_positions, sample_step
from dse.space.space import Space, space_from_mapping


@pytest.fixture
def space(small: dict[str, Any]) -> Space:
    """The small space under the model that needs no calibration."""
    return space_from_mapping(small | {"timing": "roofline"}, "here", "small")


def test_the_baseline_has_its_own_number_for_each_axis_and_link(space: Space) -> None:
    base = space.base.numbers()
    found = baseline(space)
    assert list(found) == [axis.name for axis in space.axes] + [name for name, _ in space.links]
    assert all(values.tolist() == [base[name]] for name, values in found.items())


def test_one_axis_at_a_time_leaves_the_others_at_the_base(space: Space) -> None:
    which, columns = one_axis_at_a_time(space)
    base = space.base.numbers()
    assert len(which) == sum(map(len, space.axes)) == len(columns["sm_count"])
    for row, (name, number) in enumerate(which):
        assert columns[name][row] == number
        for other in (axis.name for axis in space.axes if axis.name != name):
            assert columns[other][row] == base[other]


def test_a_link_follows_the_axis_that_decides_it_and_no_other(space: Space) -> None:
    which, columns = one_axis_at_a_time(space)
    for row, (name, number) in enumerate(which):
        fp8 = 2 * number if name == "tensor_fma_bf16" else space.base.numbers()["tensor_fma_fp8"]
        assert columns["tensor_fma_fp8"][row] == fp8


def test_a_table_s_cells_become_numbers_and_links(space: Space) -> None:
    cells = {"tensor_fma_bf16": [256, 512], "sm_count": np.array([96, 108]), "dram_bandwidth_gbs": [1675.0, 6700.0]}
    found = of_table(space, cells)
    assert found["sm_count"].tolist() == [96, 108]
    assert found["tensor_fma_fp8"].tolist() == [512, 1024]
    assert len(of_table(space, {name: [] for name in cells})["sm_count"]) == 0


@pytest.mark.parametrize("size", [1, 45, SAMPLE, 2 * SAMPLE, 1_234_560, 10**9])
def test_a_sample_runs_through_every_axis(size: int) -> None:
    step = sample_step(size)
    assert gcd(step, size) == 1
    assert step == 1 or SAMPLE / 2 < size / step < 2 * SAMPLE


def test_a_sample_is_the_same_in_whatever_parts_it_is_taken() -> None:
    size = 7 * SAMPLE
    feasible = np.random.default_rng(0).random(size) < 0.3
    whole = sample_positions(size, feasible)
    parts = [start + sample_positions(size, feasible[start : start + 999], start) for start in range(0, size, 999)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert feasible[whole].all()
