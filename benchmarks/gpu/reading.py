"""From what XLA left of compiled modules to their figures."""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.gpu.hlo import Module
from benchmarks.gpu.projection import Started, figures
from benchmarks.gpu.sass import Kernel, kernels_of
from benchmarks.gpu.thunks import launches, sources


def figures_of(dump: Path, program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a program of the index (:mod:`benchmarks.gpu.compiled`)."""
    found = [_started(dump, module) for module in program["modules"]]
    scratch = max(
        (scratch_of(_text(dump, module, "-buffer-assignment.txt")) for module in program["modules"]), default=0
    )
    started = [one for some in found for one in some]
    of = figures(started, program["designs"], scratch, program["pairs"])
    return {"program": program["program"], **of, "compile_seconds": program["seconds"]}


def _started(dump: Path, module: str) -> list[Started]:
    text = Module(_text(dump, module, ".txt"))
    source_of = sources((dump / f"{module}.thunk_metadata.txt").read_text(encoding="utf-8"))
    sequence = (dump / f"{module}.thunk_sequence.txt").read_text(encoding="utf-8")
    kernels = _kernels(sorted(dump.glob(f"{module}.*.ptx")))
    every = launches(sequence, source_of, text.trips)
    return [Started(one, kernels.get(one.kernel), text.bytes_of(one.source)) for one in every]


def _kernels(files: Sequence[Path]) -> dict[str, Kernel]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {kernel.name: kernel for kernels in pool.map(kernels_of, files) for kernel in kernels}


def _text(dump: Path, module: str, end: str) -> str:
    (path,) = dump.glob(f"{module}.*gpu_after_optimizations{end}")
    return path.read_text(encoding="utf-8")


def scratch_of(assignment: str) -> int:
    """Return the bytes of temporary arrays from the text of a buffer assignment."""
    return sum(map(int, re.findall(r"^allocation \d+: size (\d+), preallocated-temp", assignment, re.MULTILINE)))
