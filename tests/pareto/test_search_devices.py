"""A search on several devices: the files of one device."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from dse.evaluate import by_workload
from dse.evaluate.platform import CPU, PLATFORMS
from dse.pareto.search import search
from tests.grid.trivial import trivial

GENERATION = 16
"""Designs that a device takes at once: a front of more, told again when a search ends, is shared out."""

SEARCHED = "import sys; from tests.pareto.test_search_devices import searched; searched(sys.argv[1])"


def searched(folder: str) -> None:
    """Search into ``folder`` with small generations, in a process of its own; say how many devices there are."""
    by_workload.MOST_DESIGNS = 0
    PLATFORMS["cpu"] = replace(CPU, generation=GENERATION)
    found = search(trivial(10_000, Path(folder).parent), folder, evaluations=600)
    print(jax.local_device_count(), len(found.result.front))


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
    assert [devices for devices, _ in said] == [1, 4]
    assert all(front > 4 * GENERATION for _, front in said)
    for name in ("points.parquet", "pareto.parquet"):
        assert (tmp_path / "4" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    assert [record.pop("timing") for record in records]
    assert records[0] == records[1]
