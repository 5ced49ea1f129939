"""Operators that are alike are evaluated once: as often as all of them, with the same results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from dse.evaluate import by_workload
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.platform import CUDA, PLATFORMS
from dse.evaluate.space_program import Evaluator
from dse.space import designs
from dse.space.space import space_from_mapping
from dse.workload.once import once
from dse.workload.parse import load_workload
from dse.workload.target import Target
from dse.workload.workload import Workload
from tests.evaluate.two_programs import assert_alike

H100 = Target((9.0, 9.0), True)
DECODE = "gpt_oss_20b:phase=decode,batch=4,context=512,dtype=bf16"


def of(text: str) -> Workload:
    return load_workload(text, H100)


@pytest.mark.parametrize(
    "text",
    [
        DECODE,
        "gemma_3_4b:phase=generate,batch=2,prompt=2048,output=4",
        "deepseek_v3:phase=prefill,batch=8,prompt=2048,dp=8,ep=8",  # whose forms are chosen together
    ],
)
def test_each_operator_is_one_of_those_that_are_left(text: str) -> None:
    given = of(text)
    found, places = once(given)
    assert len(found.operators) < len(given.operators) and set(places) == set(range(len(found.operators)))
    for k, place in enumerate(places):
        one, other = given.operators[k], found.operators[place]
        assert (one.phase, one.forms, len(one.candidates)) == (other.phase, other.forms, len(other.candidates))
        here, there = given.slices[k], found.slices[place]
        assert all(
            np.array_equal(x[here], y[there])
            for x, y in zip(jax.tree.leaves(given.kernels), jax.tree.leaves(found.kernels), strict=True)
        )
    for phase in given.phases:
        of_given = np.bincount(places, given.phase_repeats(phase.name), len(found.operators))
        assert np.array_equal(of_given, found.phase_repeats(phase.name))


def test_layers_of_two_kinds_share_their_projections() -> None:
    given = of(DECODE)
    found, places = once(given)
    place = dict(zip((operator.name for operator in given.operators), places, strict=True))
    assert place["qkv_projection_window"] == place["qkv_projection_full"]
    assert place["attention_window"] != place["attention_full"]
    assert found.operators[place["qkv_projection_full"]].repeats == 24


def test_a_network_of_one_kind_stays_as_it_is() -> None:
    """Its two norms are alike, which is not worth another order of sums."""
    given = of("llama3_8b:phase=decode,batch=4,context=512")
    found, places = once(given)
    assert found is given and np.array_equal(places, np.arange(len(given.operators)))


def test_operators_of_several_forms_stay_apart() -> None:
    """Where only operators that are alike stand between two choices, these would become one."""
    given = of("deepseek_v3:phase=prefill,batch=8,prompt=2048,dp=8,ep=8")
    first, other = [operator for operator in given.operators if len(operator.forms) > 1][:2]
    logits = next(operator for operator in given.operators if operator.name == "logits")
    apart = replace(given, operators=(logits, first, logits, other))
    assert len(apart.choices) == 4
    found, places = once(apart)
    assert found is apart and np.array_equal(places, np.arange(4))
    assert len(once(replace(given, operators=(logits, first, logits)))[0].operators) == 2


@pytest.mark.parametrize("kernels", ["xla", pytest.param("interpreted", marks=pytest.mark.slow)])
def test_results_are_those_of_all_operators(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    """The last product is one of a type that some designs have not: which operator does not run is told apart."""
    rows = ["one,64,512,1024,bf16,3", "two,512,512,512,bf16,2", "again,64,512,1024,bf16,5", "last,64,64,64,fp8,1"]
    (tmp_path / "gemms.csv").write_text("\n".join(["name,m,n,k,dtype,count", *rows]))
    changes: dict[str, Any] = {
        "timing": "roofline",
        "axes": {"sm_count": [66, 132], "tensor_fma_bf16": [512, 1024], "tensor_fma_fp8": [0, 2048]},
        "links": {},
        "constraints": [],
        "workloads": {"products": str(tmp_path / "gemms.csv")},
        "objectives": [{"value": "products.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
    }
    space = space_from_mapping(small | changes, "here", "once")
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    if kernels == "interpreted":  # a GPU's own kernels, by plain operations
        quick = PLATFORMS["cpu"].quick
        monkeypatch.setitem(PLATFORMS, "cpu", replace(CUDA, kernels=kernels, options=quick, quick=quick))
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    found = Evaluator(space, Reasons(space))(columns)
    assert len(once(space.workloads[0])[0].operators) == 3
    monkeypatch.setattr(by_workload, "once", lambda workload: (workload, np.arange(len(workload.operators))))
    every = Evaluator(space, Reasons(space))(columns)
    codes = found.pop("code")
    np.testing.assert_array_equal(codes, every.pop("code"))
    assert len(set(codes.tolist())) == 2
    assert_alike(found, every)
