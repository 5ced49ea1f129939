"""A search on several devices: the files of one device."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from dse.evaluate import by_workload
from dse.evaluate.platform import CPU, PLATFORMS
from dse.evaluate.space_program import Evaluator
from dse.pareto.generations import LEAST_GENERATIONS
from dse.pareto.search import search
from tests.grid.trivial import trivial

GENERATION, SHARE = 64, 16
"""Designs of a generation, and those that a device takes of it at least: four devices share out every one."""

SEARCHED = "import sys; from tests.pareto.test_search_devices import searched; searched(sys.argv[1])"


def searched(folder: str) -> None:
    """Search into ``folder`` with small generations, in a process of its own; say how many devices there are, and how
    many took a part of a generation."""
    by_workload.MOST_DESIGNS = 0
    PLATFORMS["cpu"] = replace(CPU, generation=GENERATION, share=SHARE)
    asked, evaluate = set(), Evaluator.__call__

    def noted(self: Evaluator, columns: Any, names: Any = None, device: Any = None) -> Any:
        asked.add(device)
        return evaluate(self, columns, names, device)

    Evaluator.__call__ = noted
    search(trivial(10_000, Path(folder).parent), folder, evaluations=LEAST_GENERATIONS * GENERATION)
    print(jax.local_device_count(), len(asked))


@pytest.mark.slow
def test_four_devices_give_the_files_of_one(tmp_path: Path) -> None:
    said, records = [], []
    for count in (1, 4):
        folder = tmp_path / str(count)
        flags = f"--xla_force_host_platform_device_count={count}"
        environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        command, root = [sys.executable, "-c", SEARCHED, str(folder)], Path(__file__).parents[2]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
        said.append([int(word) for word in done.stdout.split()])
        records.append(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    assert said == [[1, 1], [4, 4]]
    for name in ("points.parquet", "pareto.parquet"):
        assert (tmp_path / "4" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    assert [record.pop("timing") for record in records]
    assert records[0] == records[1]
