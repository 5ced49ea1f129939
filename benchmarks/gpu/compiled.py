"""Compile programs for the H100 and keep what XLA leaves, in a process with :func:`h100.environment`.

Started by :mod:`benchmarks.gpu_program` as ``python -m benchmarks.gpu.compiled DUMP INDEX [PROGRAM ...]``; the index
says which modules each program compiled, so that no module is looked for by its name.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu.h100 import device
from benchmarks.gpu.programs import Subject, subjects


def modules(dump: Path) -> set[str]:
    """Return the modules that were compiled for a GPU, by the begin of their files' names."""
    return {path.name.removesuffix(".gpu_target_config.pbtxt") for path in dump.glob("*.gpu_target_config.pbtxt")}


def compiled(dump: Path, of: Mapping[str, Callable[[Any], Subject]]) -> list[dict[str, Any]]:
    """Compile programs one after the other; return what the index holds of each."""
    here, found = device(), []
    for name, make in of.items():
        start = time.perf_counter()
        before = modules(dump)
        subject = make(here)
        subject.compile()
        new = sorted(modules(dump) - before)
        known = {"program": name, "designs": subject.designs, "pairs": subject.pairs, "modules": new}
        found.append(known | {"seconds": time.perf_counter() - start})
    return found


def main() -> None:
    """Compile the named programs, all by default."""
    dump, index, *wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        every = subjects(Path(folder))
        some = {name: make for name, make in every.items() if not wanted or name in wanted}
        Path(index).write_text(json.dumps(compiled(Path(dump), some)), encoding="utf-8")


if __name__ == "__main__":
    main()
