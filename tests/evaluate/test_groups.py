"""Designs in groups that have attributes in common: the same results in any order, and tables within bounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dse.evaluate import by_workload, space_program
from dse.evaluate.groups import MOST_BYTES, SIZES, Cost, Groups, TableCache, chosen_groups
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.space import designs
from dse.space.space import Space, space_from_mapping

L2_MIB = {"from": 20, "to": 49, "step": 1}


def of_axes(small: dict[str, Any], **changes: Any) -> Space:
    """The small space with the roofline, 1350 designs: too many for a block."""
    axes = small["axes"] | {"l2_mib": L2_MIB} | changes.pop("axes", {})
    return space_from_mapping(small | {"timing": "roofline", "axes": axes} | changes, "here", "groups")


@pytest.fixture(scope="module")
def evaluators(request: pytest.FixtureRequest) -> tuple[Evaluator, Evaluator]:
    """Evaluators of one space, with links: designs in groups of two SM counts and clocks, and as they come."""
    from tests.conftest import SMALL

    links = SMALL["links"] | {"l2_slices": "sm_count - 1", "boost_clock_mhz": "1500 + sm_count"}
    one = {"workloads": {"prefill": SMALL["workloads"]["prefill"]}, "objectives": SMALL["objectives"][::2]}
    space = of_axes(SMALL, links=links, constraints=["die_mm2 <= 830"], **one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_workload, "MOST_DESIGNS", 0)
        patch.setattr(space_program, "chosen_groups", lambda *_: Groups(("sm_count", "l2_slices"), 32, 12))
        pair = Evaluator(space, Reasons(space), in_order=True), Evaluator(space, Reasons(space))
        assert pair[0].groups and pair[1].groups is None
    return pair


@pytest.mark.parametrize("which", ["in order", "in no order", "one", "the base", "off the grid"])
def test_groups_change_no_result(evaluators: tuple[Evaluator, Evaluator], which: str) -> None:
    grouped, plain = evaluators
    space, draw = grouped.space, np.random.default_rng(0)
    drawn = draw.integers(space.size, size=space.size)
    numbers = {"in order": np.arange(space.size), "one": np.array([77])}.get(which, drawn)
    columns = designs.with_links(space, space.at(numbers))
    if which == "the base":
        columns = designs.baseline(space)
    if which == "off the grid":
        columns["sm_count"] = columns["sm_count"] + draw.uniform(0, 1, len(numbers))
    found, expected = grouped(columns), plain(columns)
    np.testing.assert_array_equal(found.pop("code"), expected.pop("code"))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=2e-6, err_msg=name)


def test_each_design_stands_in_a_group_of_its_kind() -> None:
    draw = np.random.default_rng(1)
    columns = {"a": draw.integers(3, size=1000), "b": draw.integers(4, size=1000), "c": np.arange(1000)}
    groups = Groups(("a", "b"), 32, 4)
    places = groups.places(columns)
    assert places.shape[1] == groups.size and set(places.reshape(-1).tolist()) == set(range(1000))
    for name in groups.attributes:
        assert np.all(columns[name][places] == columns[name][places][:, :1])
    assert len(places) <= 1000 / groups.size + 12
    found = groups.evaluated(
        lambda columns, tables: columns | {"t": columns["c"] * 0 + tables[:, None]},
        TableCache(lambda common: common["a"] * 10 + common["b"]),
        columns,
    )
    np.testing.assert_array_equal(found["c"], columns["c"])
    np.testing.assert_array_equal(found["t"], columns["a"] * 10 + columns["b"])


def test_a_combination_is_computed_once_and_forgotten_beyond_the_bound() -> None:
    asked: list[int] = []

    def compute(common: Mapping[str, np.ndarray]) -> np.ndarray:
        asked.append(len(common["a"]))
        return np.tile(common["a"][:, None], (1, 1000)).astype(np.float32)

    cache = TableCache(compute)
    np.testing.assert_array_equal(cache({"a": np.array([1.0, 2.0, 1.0])})[:, 0], [1, 2, 1])
    cache({"a": np.array([2.0, 1.0])})
    assert asked == [2]
    cache({"a": np.arange(MOST_BYTES // 4000 + 1)})
    cache({"a": np.array([1.0])})
    assert asked[-1] == 1


def test_the_axes_that_save_most_are_common(small: dict[str, Any]) -> None:
    space = of_axes(
        small, axes={"l2_mib": {"from": 20, "to": 50, "count": 31}, "tdp_w": {"from": 300, "to": 700, "step": 2}}
    )

    def cost(attributes: Any) -> Cost:
        return Cost(1000.0 - 600.0 * ("sm_count" in attributes) - 1.0 * ("l2_mib" in attributes), 600.0, 100)

    groups = chosen_groups(space, 32768, cost)
    assert groups is not None and groups.attributes == ("sm_count",) and groups.size in SIZES
    assert groups.size * groups.count < 1.1 * 32768
    linked = of_axes(small, links={"l2_slices": "sm_count - 1", "tdp_w": "sm_count + dram_bandwidth_gbs"})
    groups = chosen_groups(linked, 32768, cost)
    assert groups is not None and groups.attributes == ("sm_count", "l2_slices")


def test_none_where_nothing_is_saved_or_tables_grow_too_large(small: dict[str, Any]) -> None:
    space = of_axes(small)
    assert chosen_groups(space, 32768, lambda attributes: Cost(1000.0, 0.0, 0)) is None
    large = lambda attributes: Cost(1000.0 - 900.0 * bool(attributes), 0.0, int(MOST_BYTES))  # noqa: E731
    assert chosen_groups(space, 32768, large) is None
    no_axes = space_from_mapping(small | {"axes": {"sm_count": [132]}}, "here", "one")
    assert chosen_groups(no_axes, 1024, lambda attributes: Cost(1000.0, 0.0, 0)) is None
