"""Searches of spaces with variants: local search and Optuna find what a sweep finds."""

from typing import Any

import pytest

import dse
from dse.pareto.search_state import grid_of
from dse.space.space import Space, space_from_mapping


@pytest.fixture
def space(small: dict[str, Any]) -> Space:
    small["axes"] = {"decode.batch": [1, 8, 64], "sm_count": [96, 108, 132], "dram_bandwidth_gbs": [1675, 3350]}
    constraints = ["decode.tbt_ms <= 1.2 * base.decode.tbt_ms"]
    return space_from_mapping(small | {"base": ["h100_sxm", "b200"], "constraints": constraints}, "here", "small")


@pytest.mark.parametrize("sampler", ["local", "nsga2"])
def test_a_search_of_all_designs_finds_the_sweeps_front(space: Space, sampler: str):
    found = dse.search(space, sampler=sampler, evaluations=36 if sampler == "local" else 200)
    front = dse.sweep(space).front
    columns = ["base", "decode.batch", "sm_count", "dram_bandwidth_gbs"]
    members = set(found.result.front[columns].itertuples(index=False, name=None))
    every = set(front[columns].itertuples(index=False, name=None))
    assert members == every if sampler == "local" else members & every


def test_batch_has_neighbours_and_bases_have_none(space: Space):
    assert grid_of(space).ordered.tolist() == [False, True, True, True]


def test_refinement_is_refused(space: Space):
    with pytest.raises(dse.InputError, match="refine"):
        dse.search(space, evaluations=10, refine=True)
