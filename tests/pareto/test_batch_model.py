"""Designs evaluated by number, in chunks that several devices take in turn: what one device gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from dse.evaluate import by_workload
from dse.evaluate.platform import CPU, PLATFORMS
from dse.pareto.batch_model import BatchModel
from tests.grid.trivial import trivial


class OnNamedDevices:
    """An evaluator that says it has several devices, and notes which it is asked for."""

    def __init__(self, evaluator: Any) -> None:
        self.devices, self.asked, self._evaluator = ["one", "two", "three"], list[str](), evaluator
        self.base_results = evaluator.base_results

    def __call__(self, columns: Any, names: Any, device: str) -> Any:
        self.asked.append(device)
        return self._evaluator(columns, names)


def test_devices_take_chunks_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    model = BatchModel(trivial(10_000, tmp_path), 512)
    index = np.arange(0, 10_000, 5)
    alone = model(index)
    several = OnNamedDevices(model._evaluator)
    monkeypatch.setattr(model, "_evaluator", several)
    found = model(index)
    chunks = -(-len(index) // model.chunk)
    assert chunks > 3
    assert sorted(several.asked) == sorted((several.devices * chunks)[:chunks])
    np.testing.assert_array_equal(found.costs, alone.costs)
    np.testing.assert_array_equal(found.code, alone.code)


def test_devices_share_out_a_generation_where_each_gets_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_workload, "MOST_DESIGNS", 0)
    monkeypatch.setitem(PLATFORMS, "cpu", replace(CPU, generation=128, share=32))
    space, four = trivial(10_000, tmp_path), jax.local_devices()[:1] * 4
    alone, shared = BatchModel(space), BatchModel(space, devices=four)
    assert (alone.generation, alone.chunk) == (shared.generation, 4 * shared.chunk) == (128, 128)
    assert BatchModel(space, devices=four[:3]).chunk == -(-128 // 3)
    assert BatchModel(space, chunk=63, devices=four).chunk == 63  # two would get fewer than 32
    index = np.arange(0, 10_000, 79)
    one, other = alone(index), shared(index)
    np.testing.assert_array_equal(one.costs, other.costs)
    for name, values in one.results.items():
        np.testing.assert_array_equal(values, other.results[name], name)
