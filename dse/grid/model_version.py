"""Which model computed a result: a hash of the code and the tables that decide numbers."""

import hashlib
from functools import cache
from pathlib import Path

import dse

ROOMS = ("base", "hardware", "traces", "workload", "timing", "power", "space", "evaluate")
"""Folders whose code decides what a design's results are; their tables are in the inputs' digest."""


@cache
def model_version() -> str:
    """Return a hash of the model's code, eight digits: the same for the same code, wherever it is installed."""
    package = Path(str(dse.__file__)).parent
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
