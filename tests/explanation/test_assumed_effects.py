"""What assumed numbers decide: elasticities that are known by reason, and orders that change by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.changed_numbers import Answers
from dse.evaluate.infeasibility import Reasons
from dse.explanation.assumed_effects import CHANGE, AssumedEffects, assumed_effects, changes_of
from dse.explanation.assumed_numbers import AssumedNumber, Range
from dse.space.space import Space, space_from_mapping

PRICED = [
    {"value": "prefill.ttft_ms", "goal": "min"},
    {"value": "die_usd", "goal": "min"},
    {"value": "memory_usd", "goal": "min"},
]
NUMBER = AssumedNumber("n", "number", "t.csv", "1", "assumed", "a", 1.0, 0.5, 2.0, Range(0.5, 2, "b"), lambda n, f: n)


def space_of(small: dict[str, Any], **changes: Any) -> Space:
    prefill = {"prefill": small["workloads"]["prefill"]}
    return space_from_mapping(small | {"timing": "roofline", "workloads": prefill} | changes, "here", "few")


@pytest.fixture
def effects(small: dict[str, Any]) -> AssumedEffects:
    space = space_of(small, objectives=PRICED)
    evaluations = [evaluation_of(workload, space.model, space.power) for workload in space.workloads]
    return assumed_effects(space, space.at(np.array([0, 22, 44, 30])), ["A", "B"], evaluations)


def test_prices_have_the_elasticities_that_they_must(effects: AssumedEffects) -> None:
    slopes = effects.effects.set_index(["name", "objective", "design"])["elasticity"]
    for design in ("base", "A", "B"):
        assert slopes["wafer_usd of tsmc_4n", "die_usd", design] == pytest.approx(1, rel=1e-4)
        assert slopes["usd_per_gb of hbm3", "memory_usd", design] == pytest.approx(1, rel=1e-4)
        assert slopes["usd_per_gb of hbm3", "die_usd", design] == 0
        assert slopes["defects_per_cm2 of tsmc_4n", "die_usd", design] > 0.1
    assert effects.challengers == 2 and not effects.left_out


def test_the_largest_come_first(effects: AssumedEffects) -> None:
    largest = effects.largest()
    assert largest.is_monotonic_decreasing
    first = effects.numbers[effects.deciding(5)[0]]
    assert first.name in ("defects_per_cm2 of tsmc_4n", "usd_per_gb of hbm3")
    assert list(dict.fromkeys(effects.effects["number"])) == list(largest.index)


def changes(small: dict[str, Any], *costs: Any, names: str = "AB", codes: Any = None) -> pd.DataFrame:
    """Changes of the order by hand: costs at the value and both ends, a row a design, the base first."""
    space = space_of(small, objectives=PRICED[:2])
    values = np.array(costs, float)
    found = Answers(values, np.zeros(values.shape[:2], int) if codes is None else np.array(codes))
    return pd.DataFrame(changes_of(space, ["base", *names], [NUMBER], found, Reasons(space)), columns=list(CHANGE))


BEFORE = [[10, 10], [8, 9], [9, 8]]


def test_nothing_changes_where_all_move_alike(small: dict[str, Any]) -> None:
    assert changes(small, BEFORE, 2 * np.array(BEFORE), np.array(BEFORE) / 3).empty


def test_two_designs_change_their_order(small: dict[str, Any]) -> None:
    table = changes(small, BEFORE, BEFORE, [[10, 10], [9.5, 9], [9, 8.99]])
    (order,) = table[table["kind"] == "order"].to_dict("records")
    assert (order["end"], order["at"], order["objective"]) == ("high", 2.0, "prefill.ttft_ms")
    assert (order["first"], order["second"], order["first_at"], order["second_at"]) == ("A", "B", 9.5, 9.0)
    assert table[table["kind"] == "front"]["first"].tolist() == ["A"]  # B is now better in both


def test_a_tie_has_no_order(small: dict[str, Any]) -> None:
    before = [[10, 10], [8.0, 9], [8.05, 8]]
    assert "order" not in set(changes(small, before, before, [[10, 10], [8.05, 9], [8.0, 8]])["kind"])


def test_a_design_that_was_no_worse_than_the_base_is_worse(small: dict[str, Any]) -> None:
    before = [[10, 10], [10, 5], [20, 4]]
    table = changes(small, before, [[10, 10], [10.2, 5], [30, 4]], before)
    assert table[["end", "kind", "first", "second"]].to_numpy().tolist() == [["low", "base", "A", "base"]]


def test_a_further_member_of_the_front_takes_the_place_of_a_design(small: dict[str, Any]) -> None:
    before = [[10, 10], [8, 9], [9, 8], [8.5, 8.5]]
    table = changes(small, before, before, [[10, 10], [8, 9], [9, 8], [7, 7]])
    assert table[["end", "kind", "first", "second"]].to_numpy().tolist() == [["high", "front", d, ""] for d in "AB"]


def test_a_design_that_cannot_be_had(small: dict[str, Any]) -> None:
    reasons = Reasons(space_of(small, objectives=PRICED[:2]))
    power = next(k for k, reason in enumerate(reasons.all) if reason.kind == "power")
    table = changes(small, BEFORE, BEFORE, BEFORE, codes=[[0, 0, 0], [0, 0, power], [0, 0, 0]])
    assert table[["end", "kind", "first"]].to_numpy().tolist() == [["low", "lost", "B"]]
    assert table["why"].iloc[0].startswith("power: prefill draws more")
