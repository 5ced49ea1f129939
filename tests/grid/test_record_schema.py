"""The record of a run: a key that is missing or holds something else is named."""

import copy
from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.grid.record_schema import RUN, again_of, check_columns, check_shape
from dse.grid.result import LIBRARIES

RECORD: dict[str, Any] = {
    "digest": "abc",
    "name": "small",
    "space": {},
    "folder": "",
    "keep": "all",
    "n": 45,
    "n_feasible": 40,
    "n_pareto": 3,
    "infeasible": {"die too large": 5},
    "baseline": {"sm_count": [132], "reason": [None]},
    "axis_effects": {},
    "top": {"sm_count": [132, 144], "time_ms": [1.0, 2.0]},
    "libraries": dict.fromkeys(LIBRARIES, "1.0"),
    "timing": {"seconds": {"compile": 1.5}},
}
SEARCH = RECORD | {
    "search": {"sampler": "local", "seed": 0, "evaluations": 2000, "hypervolume": 0.9},
    "timing": {"seconds": {}, "history": [[100, 1.5, 7, 0.8]]},
}
HERE = Path("run.json")


def changed(record: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return a record with another value of a key, a table's after a point; without it where the value is None."""
    record = copy.deepcopy(record)
    *tables, name = key.split(".")
    place = record
    for table in tables:
        place = place[table]
    if value is None:
        del place[name]
    else:
        place[name] = value
    return record


def test_whole_records_pass() -> None:
    check_shape(HERE, RECORD)
    check_shape(HERE, SEARCH)
    check_shape(HERE, RECORD | {"a key of a later version": 3})


@pytest.mark.parametrize("key", RUN)
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(InputError, match=f"run.json: {key} is missing; sweep again"):
        check_shape(HERE, changed(RECORD, key, None))


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("name", 3, "a text"),
        ("keep", "some", "all or front"),
        ("n", -1, "a whole number of at least 0"),
        ("n", True, "a whole number"),
        ("n_pareto", 3.0, "a whole number"),
        ("infeasible", {"why": "many"}, "a table of whole numbers by reason"),
        ("top", {"a": [1], "b": [1, 2]}, "columns of the same length"),
        ("top", {"a": [{}]}, "columns of the same length"),
        ("libraries", {}, "the version of each of"),
        ("timing.seconds", {"compile": float("nan")}, "a table of seconds"),
    ],
)
def test_another_value_is_refused_with_what_would_be_accepted(key: str, value: Any, kind: str) -> None:
    with pytest.raises(InputError, match=f"run.json: {key} = .* is not accepted; give {kind}.*, or sweep again"):
        check_shape(HERE, changed(RECORD, key, value))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search.seed", "0"),
        ("search.hypervolume", None),
        ("timing.history", [[1, 2, 3]]),
        ("timing.history", [["a"] * 4]),
    ],
)
def test_a_search_has_keys_of_its_own(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{key} .*search again"):
        check_shape(HERE, changed(SEARCH, key, value))


def test_who_made_a_record_makes_it_again() -> None:
    assert (again_of(RECORD), again_of(SEARCH)) == ("sweep again", "search again")


def test_columns_that_are_read_are_there_and_numeric_ones_hold_numbers() -> None:
    columns = {"sm_count": [132, None], "reason": ["", "too large"]}
    check_columns("top", columns, ["sm_count", "reason"], ["sm_count"])
    with pytest.raises(InputError, match="top: column 'l2_mib' is missing"):
        check_columns("top", columns, ["l2_mib"])
    with pytest.raises(InputError, match="top: reason = '' is not accepted; give a number"):
        check_columns("top", columns, [], ["reason"])
