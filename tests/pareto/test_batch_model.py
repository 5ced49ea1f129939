"""Designs evaluated by number, in chunks that several devices take in turn: what one device gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.evaluate import by_workload
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
