"""Programs by platform: a GPU's has no loops over parts and other sizes, and gives the CPU's results."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.scaling import cheapest
from dse.evaluate import by_workload, space_program
from dse.evaluate.batching import in_parts
from dse.evaluate.groups import Groups
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.partial_evaluation import reciprocal
from dse.evaluate.platform import CPU, GPU, PLATFORMS, local_platform, platform_of, traced_for, traced_platform
from dse.evaluate.space_program import Evaluator
from dse.space import designs
from tests.evaluate.two_programs import assert_alike


def test_a_platform_that_is_not_named_is_a_gpu() -> None:
    assert platform_of("cpu") is CPU
    assert platform_of("gpu") is platform_of("tpu") is GPU
    assert local_platform() is platform_of(jax.default_backend())


def test_programs_are_a_cpus_unless_traced_for_another() -> None:
    with traced_for(GPU):
        assert traced_platform() is GPU
    assert traced_platform() is CPU


@pytest.mark.parametrize("parts", [1, 3])
def test_parts_at_once_are_parts_one_after_the_other(parts: int) -> None:
    rows, factors = jnp.arange(12.0 * 2).reshape(2, 12), jnp.arange(1.0, parts + 1)

    def scaled(arrays: list[jax.Array], factor: jax.Array) -> list[jax.Array]:
        return [arrays[0] * factor]

    with traced_for(GPU):
        (found,) = in_parts(scaled, [rows], factors)
    np.testing.assert_array_equal(found, rows * np.repeat(factors, 12 // parts))


def test_a_gpus_reciprocal_is_a_division() -> None:
    with traced_for(GPU):
        lines = jax.make_jaxpr(reciprocal)(jnp.float32(3.0)).eqns
    assert [line.primitive.name for line in lines] == ["div"]


@pytest.mark.parametrize("groups", [None, Groups(("sm_count",), 100, 100)], ids=["as they come", "in groups"])
def test_a_gpus_program_gives_the_cpus_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: Groups | None
) -> None:
    space = cheapest(10**4, tmp_path)
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    monkeypatch.setattr(space_program, "chosen_groups", lambda *_: groups)
    here = replace(GPU, options=CPU.options, quick=CPU.quick, kernel_block=4096)  # the GPU's, for this CPU
    columns, found = designs.with_links(space, space.at(np.arange(space.size))), []
    for platform in (CPU, here):
        monkeypatch.setitem(PLATFORMS, "cpu", platform)
        evaluator = Evaluator(space, Reasons(space), in_order=True)
        assert (evaluator.groups is None) is (groups is None)
        found.append(evaluator(columns))
    cpu, gpu = found
    np.testing.assert_array_equal(cpu.pop("code"), gpu.pop("code"))
    assert_alike(gpu, cpu)
