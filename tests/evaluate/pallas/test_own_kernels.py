"""Programs with kernels of their own: XLA's results, and XLA's program where the kernels cannot be lowered."""

from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.scaling import cheapest
from dse.evaluate import by_workload, space_program
from dse.evaluate.groups import Groups
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.pallas import own_kernels
from dse.evaluate.platform import CUDA, PLATFORMS, platform_of_device, traced_for
from dse.evaluate.space_program import Evaluator
from dse.grid.shard import Shard, SpaceEvaluator, shards
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL
from tests.evaluate.two_programs import assert_alike
from tests.grid.fronts import TIE, only_ties
from tests.grid.trivial import trivial


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> Space:
    """A space of 450 designs, some of which run nothing, with a program of its own."""
    axes = SMALL["axes"] | {"l2_mib": {"from": 20, "to": 40, "step": 5}, "tensor_fma_fp8": [0, 512]}
    given: dict[str, Any] = SMALL | {"timing": "roofline", "axes": axes}
    given["links"] = {"tensor_fma_fp16": "tensor_fma_bf16"}
    given["workloads"] = {"decode": "gpt2_xl:phase=decode,batch=8,context=512,dtype=fp8"}
    given["objectives"] = [{"value": "decode.tbt_ms", "goal": "min"}]
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    return space_from_mapping(given, "here", "kernels")


def results(space: Space, monkeypatch: pytest.MonkeyPatch, kernels: str) -> dict[str, np.ndarray]:
    """Return the results of all designs, by a GPU's program that is compiled for this CPU."""
    here = replace(CUDA, kernels=kernels, options=PLATFORMS["cpu"].quick, quick=PLATFORMS["cpu"].quick)
    with monkeypatch.context() as patch:
        patch.setitem(PLATFORMS, "cpu", here)
        evaluator = Evaluator(space, Reasons(space), in_order=True)
        return evaluator(designs.with_links(space, space.at(np.arange(space.size))))


@pytest.mark.parametrize(
    "groups",
    [pytest.param(Groups(("sm_count",), 32, 16), marks=pytest.mark.slow), pytest.param(None, marks=pytest.mark.slow)],
    ids=["in groups", "as they come"],
)
def test_kernels_give_the_results_of_the_other_program(
    space: Space, monkeypatch: pytest.MonkeyPatch, groups: Groups | None
) -> None:
    monkeypatch.setattr(space_program, "chosen_groups", lambda *_: groups)
    found, expected = (results(space, monkeypatch, kernels) for kernels in ("interpreted", "xla"))
    np.testing.assert_array_equal(found.pop("code"), expected.pop("code"))
    assert_alike(found, expected)


def of_both_programs(space: Space, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpaceEvaluator]:
    """A sweep's evaluator by the project's own kernels, interpreted, and one by XLA's program."""
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    quick = PLATFORMS["cpu"].quick
    for kernels in ("interpreted", "xla"):
        here = replace(CUDA, kernels=kernels, options=quick, quick=quick, kernel_block=4096, chunk=4096)
        monkeypatch.setitem(PLATFORMS, "cpu", here)
        yield SpaceEvaluator(space, reduced=True)


def test_a_sweep_by_kernels_has_the_front_of_the_other_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reduces is written and no more, so that kernels leave out what objectives do not need."""
    objectives = ["gemm.time_ms", "gemm.energy_j", "die_mm2"]
    content = cheapest(10**4, tmp_path).content | {"objectives": [{"value": x, "goal": "min"} for x in objectives]}
    space = space_from_mapping(content, "here", "cheap", tmp_path)
    found = []
    for evaluator in of_both_programs(space, monkeypatch):
        accumulator = evaluator.shard(Shard(0, 0, space.size), False).accumulator
        some = evaluator.designs(np.arange(0, space.size, 97)).to_pandas().select_dtypes("number")
        found.append((accumulator.arrays(), {name: values.to_numpy() for name, values in some.items()}))
    (mine, my_designs), (theirs, their_designs) = found
    assert mine.keys() == theirs.keys()
    for name, values in theirs.items():
        if np.issubdtype(np.asarray(values).dtype, np.floating):
            np.testing.assert_allclose(mine[name], values, rtol=TIE, err_msg=name)
    assert_alike(my_designs, their_designs)


def test_a_whole_front_is_the_other_programs_but_for_ties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objectives = [{"value": x, "goal": "min"} for x in ("gemm.time_ms", "gemm.energy_j", "die_mm2")]
    space = trivial(20_000, tmp_path, objectives=objectives)
    fronts = []
    for evaluator in of_both_programs(space, monkeypatch):
        found = [evaluator.shard(shard, False).accumulator for shard in shards(space.size, evaluator.chunk_size)]
        for other in found[1:]:
            found[0].merge(other)
        fronts.append(found[0].front.members)
    (mine, my_costs), (theirs, their_costs) = fronts
    assert only_ties(my_costs, their_costs).all() and only_ties(their_costs, my_costs).all()
    _, my_places, their_places = np.intersect1d(mine, theirs, return_indices=True)
    assert len(my_places) > 0
    np.testing.assert_allclose(my_costs[my_places], their_costs[their_places], rtol=TIE)


def test_where_they_do_not_lower_the_other_program_runs_and_it_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own_kernels._say.cache_clear()

    def lower() -> str:
        if own_kernels.own_kernels():
            raise NotImplementedError("no such instruction")
        return "by XLA"

    with traced_for(CUDA):
        assert [own_kernels.with_own_kernels(lower) for _ in range(2)] == ["by XLA"] * 2
        assert own_kernels.own_kernels() == "pallas"
        with jax.enable_x64(True):
            assert own_kernels.own_kernels() is None
    assert capsys.readouterr().err.count("XLA's program runs") == 1


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_in_the_context_that_later_programs_would_be_traced_in(fails: bool) -> None:
    def lower() -> None:
        if own_kernels.own_kernels() and fails:
            raise NotImplementedError("no such instruction")  # as a release that does not lower them

    def lowered() -> set[ContextVar]:
        before = set(copy_context())
        with traced_for(CUDA):
            own_kernels.with_own_kernels(lower)
        return set(copy_context()) - before

    assert copy_context().run(lowered) == set()


def test_an_error_that_is_not_theirs_is_raised_once() -> None:
    tried = []

    def lower() -> None:
        tried.append(1)
        raise ValueError("another")

    with pytest.raises(ValueError, match="another"):
        own_kernels.with_own_kernels(lower)
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("platform", "kind", "kernels"),
    [
        ("gpu", "NVIDIA H100 80GB HBM3", "pallas"),
        ("gpu", "AMD Instinct MI300X", "xla"),
        ("tpu", "TPU v5", "xla"),
        ("cpu", "cpu", "xla"),
    ],
)
def test_gpus_of_one_maker_take_them(platform: str, kind: str, kernels: str) -> None:
    assert platform_of_device(SimpleNamespace(platform=platform, device_kind=kind)).kernels == kernels
