"""What differs between designs, and the tables that say what it is worth."""

import numpy as np
import pytest

from dse.base.package_tables import read_table
from dse.comparison.ratio_terms import ATTRIBUTES, DATA_TYPES, ERRORS, STEPS, TENSOR, distances, features, shares, terms
from dse.hardware.presets import load_sheet
from dse.hardware.schema import gpu_schema


def far(one: str, two: str, types: tuple[str, ...] = ("bf16",)) -> dict[str, np.ndarray]:
    numbers = [load_sheet(name).numbers() for name in (one, two)]
    return distances({name: np.array([each[name] for each in numbers]) for name in numbers[0]}, types)


def test_the_tables_name_attributes_and_terms() -> None:
    assert {row["attribute"] for row in read_table(ATTRIBUTES)} <= {TENSOR, *gpu_schema()}
    known = {*features(), *STEPS, DATA_TYPES, "floor", "coefficient", "stated"}
    assert {row["term"] for row in read_table(ERRORS)} <= known
    for row in read_table(ERRORS):
        assert 0 < float(row["low"]) <= float(row["value"]) * 1.5 and float(row["value"]) < 2 and int(row["pairs"]) > 1
    assert "tensor_rate" in terms("time", "arithmetic") and "tensor_rate" not in terms("time", "memory")


def test_two_gpus_of_one_die_differ_in_their_memory() -> None:
    found = far("h100_sxm", "h200")
    assert found["dram_bandwidth"][1] == pytest.approx(np.log(4800 / 3350), abs=0.1)
    assert not found["tensor_rate"].any() and not found["sms_and_clock"].any()
    assert not any(found[name].any() for name in STEPS)


def test_gpus_of_other_kinds_differ_in_steps() -> None:
    found = far("h100_sxm", "l40s")
    assert [found[name][1].sum() for name in STEPS] == [1, 1, 0]  # both are made in tsmc_4n
    assert far("h100_sxm", "a100_sxm_80gb")["node"][1].sum() == 1
    assert found["tensor_rate"][1, 0] < 0


def test_shares_are_those_of_the_causes_halfway() -> None:
    stack = {"dram_bandwidth": np.array([8.0, 2.0]), "math_pipe_throttle": np.array([1.0, 7.0]), "launch": np.ones(2)}
    found = shares(stack)
    np.testing.assert_allclose(found["memory"], [0.8, 0.5])
    np.testing.assert_allclose(found["arithmetic"], [0.1, 0.4])
