"""A few designs, by the programs that spaces share: what a program of their own says, whatever the workloads."""

from typing import Any

import numpy as np
import pytest

from dse.evaluate import by_workload
from dse.evaluate.by_workload import MOST_DESIGNS
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.shared_programs import DESIGNS, fastest_kernels, timings_on
from dse.evaluate.space_program import Evaluator
from dse.hardware.presets import load_sheet
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from dse.timing.roofline import Roofline
from dse.timing.timing import causes_of
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.programs import quick_jit

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
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
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
        assert space.size <= MOST_DESIGNS
        assert np.isfinite(Evaluator(space, Reasons(space))(space.at(np.arange(2)))["decode.tbt_ms"]).all()


OPERATORS = [gemm_operator("g", Gemm(*shape)) for shape in ((1, 4096, 4096), (300, 1000, 5000), (4096, 4096, 512))]


alone = quick_jit(Roofline())


def one_by_one(operator, gpu):
    """Nanoseconds of each of an operator's kernels, infinite where it does not run."""
    timings = [alone(candidate.kernel.as_arrays(), gpu) for candidate in operator.candidates]
    return np.array([float(t.nanoseconds) if t.feasible else np.inf for t in timings])


def test_a_batch_of_any_count_is_timed_as_each_is():
    gpu, candidates = load_sheet("h100_sxm").record(), OPERATORS[1].candidates
    batch = timings_on(gpu, Kernel.stack([candidate.kernel for candidate in candidates]), Roofline())
    assert batch.cycles.shape == (len(candidates),)
    runs = np.asarray(batch.feasible) > 0
    assert np.asarray(batch.nanoseconds)[runs] == pytest.approx(one_by_one(OPERATORS[1], gpu)[runs], rel=1e-6)


def test_the_fastest_of_each_operator():
    gpu = load_sheet("h100_sxm").record()
    kernels, timing = fastest_kernels(Roofline(), OPERATORS, gpu)
    assert kernels.ctas.shape == (len(OPERATORS),)
    least = [one_by_one(operator, gpu).min() for operator in OPERATORS]
    assert np.asarray(timing.nanoseconds) == pytest.approx(least, rel=1e-6)


def test_an_operator_without_a_kernel_that_runs_is_infeasible():
    gpu = load_sheet("v100_sxm2_16gb").record()  # no tensor cores for bf16
    _, timing = fastest_kernels(Roofline(), [gemm_operator("g", Gemm(64, 64, 64)), OPERATORS[0]], gpu)
    assert not np.asarray(timing.feasible).any()
