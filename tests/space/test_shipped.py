"""The shipped spaces: each loads, asks its question, and a thinned run of it has an answer."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from dse.base.pareto_filter import pareto_mask
from dse.pareto.batch_model import BatchModel
from dse.space.shipped import shipped_spaces, space_question, write_template
from dse.space.space import Space, load_space

ASKED = {
    "h100_tensor_core",
    "h100_successor",
    "long_context_cache",
    "perf_per_watt",
    "prefill_chip",
    "decode_chip",
    "edge_75w",
    "latent_tensor_core",
    "mixture_on_one_gpu",
    "edge_mixture",
    "gpu_and_batch",
}
DESIGNS = 512


def test_every_question_is_shipped():
    assert set(shipped_spaces()) >= ASKED


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_a_shipped_space_loads_and_asks_its_question(name):
    path = shipped_spaces()[name]
    space = load_space(path)
    assert space.name == name
    assert space_question(path) == space.question
    assert space.question.endswith("?")
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert (100 if space.variants else 10_000) <= space.size <= 2_000_000  # GPUs as they are sold are few
    assert len(space.objectives) >= 2


def spread(space: Space) -> np.ndarray:
    """Numbers of designs that run through every axis."""
    return np.unique(np.random.default_rng(0).integers(space.size, size=DESIGNS))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_a_thinned_run_is_finite_feasible_and_no_single_design_wins(name):
    space = load_space(shipped_spaces()[name])
    found = BatchModel(space, DESIGNS)(spread(space))
    assert all(np.isfinite(values).all() for values in found.results.values())
    can_be_had = found.violation == 0
    assert can_be_had.mean() > 0.2
    front = pareto_mask(found.costs[can_be_had])
    assert 3 <= front.sum() < len(front)
    for axis in space.axes:  # no axis is decided from the start
        assert len(np.unique(found.columns[axis.name][can_be_had][front])) > 1


def test_a_template_leaves_its_own_name_and_question_alone(tmp_path: Path) -> None:
    for name, shipped in shipped_spaces().items():
        path = tmp_path / f"{name}_of_mine.toml"
        write_template(path, name)
        before, after = (tomllib.loads(each.read_text(encoding="utf-8")) for each in (shipped, path))
        assert after == {key: value for key, value in before.items() if key not in ("name", "question")}
