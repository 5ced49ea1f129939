"""Modules of experiments, whose folders' names begin with numbers and are no packages."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXPERIMENTS = Path(__file__).parents[1]


def experiment(folder: str, file: str = "run.py") -> ModuleType:
    """Return an experiment's module, made anew."""
    spec = importlib.util.spec_from_file_location(f"experiment_{folder}_{file[:-3]}", EXPERIMENTS / folder / file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
