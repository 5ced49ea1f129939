"""The README's main job, whole: a million designs in bounded memory, the same bytes twice, an exact front."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dse.space.shipped import find_space
from dse.space.space import load_space

RUN = (
    "import re, sys; from pathlib import Path; from dse.cli import run_command; code = run_command(sys.argv[1:]); "
    "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text()); "
    "print(peak[1], file=sys.stderr); sys.exit(code)"
)
"""Prints the peak memory [KiB]; ``ru_maxrss`` would hold that of the process which started this one, too."""


def swept(folder: Path) -> tuple[dict, float]:
    """Sweep the main space in a process of its own; return its JSON document and its peak memory [GB]."""
    command = [sys.executable, "-c", RUN, "sweep", "h100_tensor_core", "-o", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), int(done.stderr.split()[-1]) * 1024 / 1e9


@pytest.mark.slow
def test_the_main_job(tmp_path: Path) -> None:
    document, _ = swept(tmp_path / "one")
    assert document["n"] >= 1_000_000
    space = load_space(find_space("h100_tensor_core"))
    names = [o.name for o in space.objectives]
    costs = np.stack([pq.read_table(tmp_path / "one" / "points.parquet", columns=[n])[n].to_numpy() for n in names], 1)
    assert np.isfinite(costs).all()
    front = np.array([[row[name] for name in names] for row in document["pareto"]])
    sample = np.random.default_rng(0).choice(len(costs), 20_000, replace=False)
    for row in front[:: max(1, len(front) // 200)]:
        others = costs[sample]
        assert not ((others <= row * (1 - 1e-6)).all(axis=1)).any()
    dominated = [(front <= costs[i] * (1 + 1e-6)).all(axis=1).any() for i in sample[:2000]]
    assert all(dominated)  # every design of the sample is on the front or dominated by it
    _, memory = swept(tmp_path / "two")
    assert memory < 2.0  # of sweep and page; compiling the page's programs, which the first run did, takes more
    digests = {hashlib.sha256((tmp_path / f / "points.parquet").read_bytes()).digest() for f in ("one", "two")}
    assert len(digests) == 1
