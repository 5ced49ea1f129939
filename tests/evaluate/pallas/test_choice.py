"""Choosing among candidates as one kernel of a GPU: the candidates that XLA's program chooses, and no others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.candidates import Candidates
from dse.evaluate.device_programs import lowered_text
from dse.evaluate.fastest import choose
from dse.evaluate.pallas.choice import BLOCK, Run, kept_times, number_of, steps_of, stretches, which_run
from dse.evaluate.space_program import gpu_batch
from dse.space.space import Space
from tests.evaluate.pallas.spaces import COMMON, drawn, groups_of, several_kinds


@pytest.fixture(scope="module")
def space() -> Space:
    return several_kinds()


@pytest.fixture(scope="module")
def columns(space: Space) -> dict[str, np.ndarray]:
    return drawn(space)


@pytest.fixture(scope="module")
def candidates(space: Space, columns: dict[str, np.ndarray]) -> Candidates:
    gpus = gpu_batch(space.base.numbers(), columns)
    return Candidates(space.model, space.workloads[0], gpus)


@pytest.fixture(scope="module")
def expected(space: Space, candidates: Candidates, columns: dict[str, np.ndarray]) -> Any:
    gpus = gpu_batch(space.base.numbers(), columns)
    found = jax.jit(lambda gpus: choose(space.workloads[0], candidates.times(gpus, BLOCK)))(gpus)
    assert 0 < np.asarray(found[1]).mean() < 1  # some run nowhere
    return [np.asarray(x).T for x in found]


def test_the_same_candidates_are_chosen(candidates: Candidates, columns: dict[str, np.ndarray], expected: Any) -> None:
    found = jax.jit(candidates.choice(interpret=True))([columns[name] for name in candidates.names])
    np.testing.assert_array_equal(number_of(found), expected[0])
    np.testing.assert_array_equal(which_run(found), expected[1])


def test_terms_of_a_kernel_and_few_attributes_are_read_from_tables(
    candidates: Candidates, columns: dict[str, np.ndarray], expected: Any
) -> None:
    combinations, group = groups_of(columns)
    tables = candidates.tables(combinations, COMMON)
    choice = candidates.choice(COMMON, interpret=True)
    found = jax.jit(choice)([columns[name] for name in candidates.names], group, tables)
    np.testing.assert_array_equal(number_of(found), expected[0])
    np.testing.assert_array_equal(which_run(found), expected[1])


def test_it_lowers_to_one_kernel_of_a_gpu(candidates: Candidates) -> None:
    columns = [jax.ShapeDtypeStruct((2 * BLOCK,), jnp.float32)] * len(candidates.names)
    text = lowered_text(candidates.choice(), "cuda", columns)
    assert text.count("custom_call") == text.count("triton") == 1
    assert "f64" not in text and "callback" not in text


def test_runs_of_an_operator_come_in_order() -> None:
    kinds = [np.array([0, 1, 4, 6]), np.array([2, 3, 5])]
    found = stretches(kinds, [slice(0, 1), slice(1, 6), slice(6, 7)])
    assert [stretch.kind for stretch in found] == [0, 1, 0, 1]
    assert found[0].runs == [Run(0, 0, 1, 0, 1), Run(1, 1, 2, 1, 1), Run(2, 3, 4, 6, 1)]
    assert kept_times(found) == {1: 1}  # the only one whose runs are several
    assert [stretch.runs for stretch in found[1:]] == [[Run(1, 0, 2, 2, 0)], [Run(1, 2, 3, 4, 0)], [Run(1, 2, 3, 5, 0)]]


def test_steps_run_through_the_candidates_of_runs() -> None:
    found = steps_of([Run(0, 0, 1, 0, 1), Run(1, 1, 3, 5, 0)], {1: 1})
    assert found.tolist() == [[0, 0, 0, 1, 1, 0], [1, 5, 1, 0, 0, 1], [2, 6, 1, 0, 3, 1], [0, 0, 0, 1, 0, 0]]


def test_forms_are_chosen_as_a_whole() -> None:
    latent = "deepseek_v2_lite:phase=prefill,batch=1,prompt=160,prefix=8192"
    axes = {"sm_count": [60, 132], "dram_bandwidth_gbs": [400, 3350, 30_000], "tensor_fma_bf16": [64, 1024, 8192]}
    space = several_kinds(axes=axes, workloads={"w": latent}, objectives=[{"value": "w.ttft_ms", "goal": "min"}])
    columns, workload = drawn(space), space.workloads[0]
    gpus = gpu_batch(space.base.numbers(), columns)
    candidates = Candidates(space.model, workload, gpus)
    expected = jax.jit(lambda gpus: choose(workload, candidates.times(gpus, BLOCK)))(gpus)
    found = jax.jit(candidates.choice(interpret=True))([columns[name] for name in candidates.names])
    np.testing.assert_array_equal(number_of(found), np.asarray(expected[0]).T)
    np.testing.assert_array_equal(which_run(found), np.asarray(expected[1]).T)
    joint = next(k for k, operator in enumerate(workload.operators) if len(operator.forms) > 1)
    forms = {workload.candidate(joint, int(place)).form for place in np.unique(number_of(found)[joint])}
    assert forms == {"made", "absorbed"}
