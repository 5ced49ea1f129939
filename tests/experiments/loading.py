"""Modules of ``experiments/``, which are no packages: their names begin with numbers."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def experiment(folder: str, file: str = "run.py") -> ModuleType:
    """Return an experiment's module."""
    spec = importlib.util.spec_from_file_location(f"tested_{folder}_{file[:-3]}", EXPERIMENTS / folder / file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
