"""What counts as a difference of two answers."""

import pytest

from tests.golden.compare import differences

SAME = 2e-6


@pytest.mark.parametrize(
    ("expected", "got", "count"),
    [
        ({"a": 1.0}, {"a": 1.000001}, 0),
        ({"a": 1.0}, {"a": 1.000003}, 1),
        ({"a": 0.0}, {"a": 1e-12}, 0),
        ({"a": 1}, {"a": True}, 1),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, 2),
        ({"change": 0.001}, {"change": 0.001001}, 0),
        ({"value": 0.001}, {"value": 0.001001}, 1),
        ({"stack_ms": {"dram": 9.0, "wait": 0.1}}, {"stack_ms": {"dram": 9.0, "wait": 0.10001}}, 0),
        ({"stack_ms": {"dram": 9.0, "wait": 0.1}}, {"stack_ms": {"dram": 9.0, "wait": 0.1001}}, 1),
        ([{"name": "a", "x": 1}, {"name": "b", "x": 2}], [{"name": "b", "x": 2}, {"name": "a", "x": 1}], 0),
        ({"assumed_numbers": {"elasticities": {"A": 0.4482}}}, {"assumed_numbers": {"elasticities": {"A": 0.4483}}}, 0),
        ({"assumed_numbers": {"elasticities": {"A": 0.4482}}}, {"assumed_numbers": {"elasticities": {"A": 0.4489}}}, 1),
        ({"elasticities": {"A": 0.4482}}, {"elasticities": {"A": 0.4483}}, 1),
        ([1, 2], [2, 1], 2),
        ([1, 2], [1], 1),
        ("bf16", "fp16", 1),
        ("it takes 16.2 ms", "16.3 ms are taken", 0),
        ("it takes 16.2 ms", "it takes 16.4 ms", 1),
        ("132 SMs of 2", "2 of 132 SMs", 0),
        ("2 SMs", "3 SMs", 1),
    ],
)
def test_numbers_are_held_and_words_of_sentences_are_free(expected, got, count) -> None:
    assert len(differences(expected, got, SAME)) == count


@pytest.mark.parametrize(
    ("costs", "count"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], 0),
        ([[1.000003, 2.0], [2.0, 1.0]], 0),
        ([[1.0, 2.0], [1.000001, 1.999999], [2.0, 1.0]], 0),
        ([[1.0, 2.0]], 1),
        ([[1.0, 2.0], [1.5, 1.5], [2.0, 1.0]], 1),
        ([[1.0, 1.9], [2.0, 1.0]], 1),
    ],
)
def test_fronts_differ_by_designs_that_tie_alone(costs, count) -> None:
    front = {"objectives": ["a", "b"], "designs": {}}
    found = differences(
        {"front": front | {"costs": [[1.0, 2.0], [2.0, 1.0]]}}, {"front": front | {"costs": costs}}, SAME
    )
    assert len(found) == count


@pytest.mark.parametrize(("attribute", "time", "count"), [("l2_clock_mhz", 0.3000001, 0), ("l2_clock_mhz", 0.31, 2)])
def test_of_elasticities_that_tie_a_list_may_hold_any(attribute, time, count) -> None:
    expected = {"kernel_elasticities": [{"attribute": "l2_slices", "time": 0.3, "energy": 0.1}]}
    got = {"kernel_elasticities": [{"attribute": attribute, "time": time, "energy": 0.2}]}
    assert len(differences(expected, got, 2e-6)) == count
