"""The JSON document of an explanation with its lists cut to what matters most."""

from typing import Any

import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.explanation.shortened import check_top, heaviest, shortened

KERNELS = [
    {"phase": "prefill", "kernel": "qkv", "time_ms": 3.0},
    {"phase": "prefill", "kernel": "norm", "time_ms": 1.0},
    {"phase": "decode", "kernel": "qkv", "time_ms": 0.2},
    {"phase": "decode", "kernel": "norm", "time_ms": 0.4},
]
DOCUMENT: dict[str, Any] = {
    "gpu": "h100_sxm",
    "sentences": ["first", "second", "third"],
    "kernels": KERNELS,
    "moves": [{"metric": m, "attribute": a} for m in ("ttft_ms", "energy_j") for a in ("sm_count", "l2_mib", "tdp_w")],
    "elasticities": [{"metric": "ttft_ms", "attribute": a} for a in ("sm_count", "l2_mib")],
    "kernel_elasticities": [{"operator": k, "attribute": a} for k in range(4) for a in ("sm_count", "l2_mib")],
    "roofline": [{"operator": k} for k in (0, 1, -1, 2, 3, -1)],
    "stack_ms": {"prefill": {"wait": 1.0, "selected": 2.0, "launch": 0.5}},
    "assumed_numbers": {"deciding": ["leak", "l2_slices"], "varied": ["leak", "l2_slices", "l1_banks"], "left_out": {}},
}


def test_each_list_keeps_what_matters_most_and_says_what_it_lost() -> None:
    short = shortened(DOCUMENT, 1)
    assert short["sentences"] == ["first"]
    assert [row["kernel"] for row in short["kernels"]] == ["qkv", "norm"]  # the heaviest of each phase
    assert short["moves"] == [{"metric": m, "attribute": "sm_count"} for m in ("ttft_ms", "energy_j")]
    assert [row["operator"] for row in short["kernel_elasticities"]] == [0, 3]
    assert [row["operator"] for row in short["roofline"]] == [0, -1, 3, -1]
    assert short["cut"] == {
        "sentences": 2,
        "kernels": 2,
        "moves": 4,
        "elasticities": 1,
        "kernel_elasticities": 6,
        "roofline": 2,
        "assumed_numbers": 2,
    }
    assert short["assumed_numbers"] == {"deciding": ["leak"], "varied": ["leak"], "left_out": {}}
    assert short["gpu"] == "h100_sxm"


def test_a_stack_still_adds_up() -> None:
    stack = shortened(DOCUMENT, 1)["stack_ms"]["prefill"]
    assert stack == {"selected": 2.0, "rest": 1.5}
    assert "rest" not in shortened(DOCUMENT, 3)["stack_ms"]["prefill"]


def test_what_is_short_enough_is_left_alone() -> None:
    short = shortened(DOCUMENT, 10)
    assert short.pop("cut") == {}
    assert short == DOCUMENT


def test_of_two_designs_a_kernel_counts_by_the_longer_of_its_times() -> None:
    pair = {
        "first": DOCUMENT,
        "second": DOCUMENT,
        "sentences": ["both", "first", "second"],
        "kernels": [
            {"phase": "decode", "kernel": "a", "first_ms": 1.0, "second_ms": 5.0},
            {"phase": "decode", "kernel": "b", "first_ms": 3.0, "second_ms": 3.0},
        ],
        "stack": [{"phase": "decode", "cause": "wait", "first_ms": 2.0, "second_ms": 1.0}],
        "swaps": [{"metric": "tbt_ms", "attribute": a} for a in ("sm_count", "l2_mib")],
    }
    short = shortened(pair, 1)
    assert short["sentences"] == ["both", "first"]
    assert [row["kernel"] for row in short["kernels"]] == ["a"]
    assert short["cut"] == {"sentences": 1, "kernels": 1, "swaps": 1}
    assert short["first"] == shortened(DOCUMENT, 1)


def test_the_heaviest_kernels_stay_in_their_order_and_ties_are_reported_apart() -> None:
    times = pd.Series([2.0, 5.0, 2.0, 1.0])
    assert heaviest(times, 2).tolist() == [True, True, False, False]
    assert heaviest(times, None).all() and heaviest(times, 9).all()


@pytest.mark.parametrize("most", [0, -1])
def test_none_to_tell_is_refused(most: int) -> None:
    check_top(None)
    check_top(1)
    with pytest.raises(InputError, match=f"--top {most}: give 1 or more"):
        check_top(most)
