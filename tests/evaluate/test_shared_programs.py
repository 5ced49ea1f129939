"""A few designs, by the programs that spaces share: what a program of their own says, whatever the workloads."""

from typing import Any

import numpy as np
import pytest

from dse.evaluate import shared_programs as few
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.shared_programs import DESIGNS, FEW
from dse.evaluate.space_program import Evaluator
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from dse.timing.timing import causes_of

CALIBRATED = {"model": "amali", "calibration": "shared"}

CHANGES: dict[str, dict[str, Any]] = {
    "two phases under an engine, a calibration": {
        "timing": CALIBRATED,
        "workloads": {"decode": "gpt2_xl:phase=generate,batch=8,prompt=100,output=20,engine=vllm_0_12"},
        "objectives": [{"value": "decode.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
    },
    "two workloads, uncalibrated": {},
    "mdm, no limit": {"timing": "mdm", "power": {"model": "board", "limit": False}},
    "roofline, designs that cannot be had": {
        "timing": "roofline",
        "axes": {
            "shared_memory_kib": [16, 228, 300],
            "dram_gb": [1, 80],
            "tdp_w": [40, 300, 700],
            "sm_count": [1, 66, 132],
        },
        "links": {"l2_slices": "sm_count - 1"},
        "constraints": ["decode.tbt_ms <= 1.05 * base.decode.tbt_ms", "sm_count <= 100"],
    },
}


EVERY = {"feasible", "link", "kernel", "room", "memory", "power", "constraint"}
SLOW = ("two workloads, uncalibrated", "mdm, no limit")


def both(space: Space, monkeypatch: pytest.MonkeyPatch) -> tuple[Evaluator, Evaluator]:
    """The space's evaluators: by shared programs, and by its own."""
    shared = Evaluator(space, Reasons(space))
    monkeypatch.setattr(few, "FEW", 0)
    return shared, Evaluator(space, Reasons(space))


@pytest.mark.parametrize("change", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CHANGES])
def test_results_are_those_of_the_spaces_own_program(
    small: dict[str, Any], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    space = space_from_mapping(small | CHANGES[change], "here", "few")
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    shared, own = (evaluator(columns) for evaluator in both(space, monkeypatch))
    assert shared.keys() == own.keys()
    np.testing.assert_array_equal(shared.pop("code"), own["code"])
    reasons = {Reasons(space).all[code].kind for code in own["code"].tolist()}
    assert reasons == ({"feasible"} if "constraints" not in CHANGES[change] else EVERY)
    causes = {f"{w.name}.{cause}_ms" for w in space.workloads for cause in causes_of(w)}
    for name, values in shared.items():
        # Where candidates take as long but for rounding, another one may be chosen: the stack then tells of that one.
        rtol = 1e-4 if name in causes else 1e-5
        np.testing.assert_allclose(values, own[name], rtol=rtol, atol=1e-6 * np.abs(own[name]).max(), err_msg=name)


def test_a_design_is_the_same_wherever_it_stands(small: dict[str, Any]) -> None:
    space = space_from_mapping(small | {"timing": "roofline"}, "here", "few")
    evaluator = Evaluator(space, Reasons(space))
    assert space.size < DESIGNS
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    backwards = evaluator({name: values[::-1] for name, values in columns.items()})
    alone = evaluator({name: values[-1:] for name, values in columns.items()})
    for name, values in evaluator(columns).items():
        np.testing.assert_array_equal(backwards[name], values[::-1])
        np.testing.assert_array_equal(alone[name], values[-1:])


def test_more_designs_than_the_programs_take_at_once(small: dict[str, Any]) -> None:
    axes = small["axes"] | {"l2_mib": [25, 50, 100]}
    space = space_from_mapping(small | {"timing": "roofline", "axes": axes}, "here", "few")
    evaluator = Evaluator(space, Reasons(space))
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    assert DESIGNS < space.size <= evaluator.chunk
    last = evaluator({name: values[-10:] for name, values in columns.items()})
    for name, values in evaluator(columns).items():
        np.testing.assert_array_equal(values[-10:], last[name])


def test_another_space_compiles_no_model_again(small: dict[str, Any]) -> None:
    first = space_from_mapping(small, "here", "first")
    Evaluator(first, Reasons(first)).compile()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dse.timing.amali.Amali.nanoseconds", None)  # traced again, it would be called
        other = {"workloads": {"decode": "llama3_8b:phase=decode,batch=2,context=100"}, "base": "a100_sxm_80gb"}
        objectives = [{"value": "decode.tbt_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}]
        axes = {"sm_count": [54, 108]}
        space = space_from_mapping(
            small | other | {"objectives": objectives, "axes": axes, "links": {}}, "here", "other"
        )
        assert space.size <= FEW
        assert np.isfinite(Evaluator(space, Reasons(space))(space.at(np.arange(2)))["decode.tbt_ms"]).all()
