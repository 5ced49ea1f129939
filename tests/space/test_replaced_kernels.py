"""Kernels that are left out run on no design: by the rule that every design decides with, and where rooms differ."""

import itertools
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.hardware.gpu import Gpu
from dse.space import workloads
from dse.space.links import with_links
from dse.space.replaced_kernels import Room, room_of, without_replaced
from dse.space.space import Space, load_space, space_from_mapping
from dse.timing.tensor_core import supported
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.workload import Workload

SPACES = sorted((Path(__file__).parents[2] / "spaces").glob("*.toml"))

QUICK = ("h100_tensor_core", "edge_75w", "gpu_and_batch")
"""Read in every run of the suite: the main space, one of GDDR GPUs, one of several bases."""

EACH = [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in SPACES]

DOUBLE = 2 * 348
"""Twice the candidates of the main space before it had larger tiles and clusters."""


def plain(space: Space) -> list[Space]:
    """The space, or those of its variants that can be."""
    return [one.space for one in space.variants.every if one.space] if space.variants else [space]


def at_the_ends(space: Space) -> Gpu:
    """Designs at every end of the axes and the base GPU, or 512 of them at random."""
    ends = list(itertools.product(*((min(axis.numbers), max(axis.numbers)) for axis in space.axes)))
    draw = np.random.default_rng(0).permutation(len(ends))[:512]
    columns = {axis.name: np.array(ends)[draw, i] for i, axis in enumerate(space.axes)}
    numbers = {**space.base.numbers(), **with_links(space.base.numbers(), space.links, columns)}
    both = {k: np.append(np.broadcast_to(x, len(draw)), space.base.numbers()[k]) for k, x in numbers.items()}
    return Gpu.from_attributes({k: np.asarray(x, np.float32) for k, x in both.items()})


@pytest.fixture
def everything(monkeypatch):
    """Loads a space with all kernels, replaced ones too."""

    def load(path: Path) -> Space:
        with monkeypatch.context() as patch:
            patch.setattr(workloads, "without_replaced", lambda workload, room: workload)
            return load_space(path)

    return load


def candidates(space: Space) -> int:
    return sum(len(operator.candidates) for workload in space.workloads for operator in workload.operators)


@pytest.mark.parametrize("path", EACH)
def test_what_is_left_out_runs_on_no_design(path, everything):
    for whole, left in zip(plain(everything(path)), plain(load_space(path)), strict=True):
        gpus = at_the_ends(whole)
        for one, other in zip(whole.workloads, left.workloads, strict=True):
            for operator, kept in zip(one.operators, other.operators, strict=True):
                out = [c.kernel for c in operator.candidates if c.label not in {k.label for k in kept.candidates}]
                assert len(out) == len(operator.candidates) - len(kept.candidates)
                for kernel in out:
                    runs = jax.vmap(lambda gpu, kernel=kernel: supported(kernel, gpu))(gpus)
                    assert not np.asarray(runs).any(), kernel


def test_the_main_space_has_at_most_twice_its_first_candidates():
    assert candidates(load_space(next(p for p in SPACES if p.stem == "h100_tensor_core"))) <= DOUBLE


def test_a_space_of_small_shared_memories_keeps_what_runs_there(small):
    """A smaller tile's pipeline runs where a larger one does not fit."""
    large, varied = (
        space_from_mapping(small | {"axes": {"shared_memory_kib": sizes}, "links": {}}, "here", "small")
        for sizes in ([228, 256], [64, 256])
    )
    assert candidates(varied) > candidates(large)


def test_a_base_outside_of_its_axes_counts(small):
    """Constraints compare with it."""
    content = small | {"base": "a100_sxm_80gb", "axes": {"shared_memory_kib": [228, 256]}, "links": {}}
    space = space_from_mapping(content, "here", "small")
    room = room_of(space.base.numbers(), space.axes, space.links)
    assert room == Room(164 - 1, 0.0)


def test_a_kernel_without_a_better_one_is_never_replaced(small):
    room = Room(1e6, 1e6)
    workload: Workload = space_from_mapping(small, "here", "small").workloads[0]
    kernels = [c.kernel for o in workload.operators for c in o.candidates]
    assert [room.replaces(k) for k in kernels] == [k.unless_kib > 0 or k.unless_warpgroup_kib > 0 for k in kernels]


def candidate(label: str, form: str = "", **needs: float) -> Candidate:
    return Candidate(label, Kernel(Interval(), Interval(), Interval(), **needs), form)


@pytest.mark.parametrize(
    ("made", "left"),
    [
        ([candidate("one", "apart"), candidate("two", "both", unless_kib=8.0)], ["one", "two"]),
        ([candidate("one"), candidate("two", unless_kib=8.0)], ["one"]),
        ([candidate("one", unless_kib=8.0), candidate("two", unless_warpgroup_kib=8.0)], ["one", "two"]),
        ([candidate("one"), candidate("two", unless_kib=75.1), candidate("three", unless_kib=75.0)], ["one", "two"]),
    ],
)
def test_every_form_of_an_operator_keeps_its_kernels(made, left, small):
    whole = replace(
        space_from_mapping(small, "here", "small").workloads[0], operators=(Operator("x", "x", tuple(made)),)
    )
    found = without_replaced(whole, Room(100.0, 100.0)).operators[0]
    assert [one.label for one in found.candidates] == left


@pytest.mark.slow
def test_the_best_times_are_those_of_all_candidates(everything):
    path = next(p for p in SPACES if p.stem == "h100_tensor_core")
    found, expected = (
        Evaluator(space, Reasons(space))(ends_and_more(space, 500)) for space in (load_space(path), everything(path))
    )
    np.testing.assert_array_equal(found["code"], expected["code"])
    for name in ("prefill.time_ms", "decode.time_ms"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, err_msg=name)


def ends_and_more(space: Space, more: int) -> dict[str, np.ndarray]:
    """Every combination of the axes' ends, and ``more`` designs drawn at random."""
    ends = np.array(list(itertools.product(*([0, len(axis) - 1] for axis in space.axes)))).T
    draw = np.random.default_rng(0)
    places = np.hstack([ends, [draw.integers(len(axis), size=more) for axis in space.axes]])
    axes = {axis.name: np.asarray(axis.numbers)[p] for axis, p in zip(space.axes, places, strict=True)}
    return with_links(space.base.numbers(), space.links, axes)
