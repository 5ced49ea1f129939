"""A batch design-space explorer for GPUs: state a space and a workload, get the Pareto set with its reasons.

The public names are loaded on first use (PEP 562), so that ``import dse`` imports nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "InputError": "dse.errors",
    "Gpu": "dse.hardware.gpu",
    "load_gpu": "dse.hardware.presets",
    "DieArea": "dse.hardware.area",
    "Kernel": "dse.workload.kernel",
    "Workload": "dse.workload.workload",
    "load_workload": "dse.workload.parse",
    "Timing": "dse.timing.timing",
    "Amali": "dse.timing.amali",
    "Roofline": "dse.timing.roofline",
    "Space": "dse.space.space",
    "load_space": "dse.space.space",
    "run": "dse.sweep.run",
    "RunResult": "dse.sweep.run",
    "SweepResult": "dse.sweep.result",
    "SearchResult": "dse.search.search",
    "explain": "dse.search.explain",
    "Explanation": "dse.search.explain",
    "compare": "dse.search.compare",
    "Comparison": "dse.search.compare",
    "pareto_mask": "dse.sweep.pareto",
}

_CALLABLE_FOLDERS = {"search", "sweep"}
"""Public functions that share their name with a folder: the folder's module is callable."""

__all__ = [*sorted({*_HOME, *_CALLABLE_FOLDERS}), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from dse.errors import InputError as InputError
    from dse.hardware.area import DieArea as DieArea
    from dse.hardware.gpu import Gpu as Gpu
    from dse.hardware.presets import load_gpu as load_gpu
    from dse.search.compare import Comparison as Comparison
    from dse.search.compare import compare as compare
    from dse.search.explain import Explanation as Explanation
    from dse.search.explain import explain as explain
    from dse.search.search import SearchResult as SearchResult
    from dse.search.search import search as search
    from dse.space.space import Space as Space
    from dse.space.space import load_space as load_space
    from dse.sweep.pareto import pareto_mask as pareto_mask
    from dse.sweep.result import SweepResult as SweepResult
    from dse.sweep.run import RunResult as RunResult
    from dse.sweep.run import run as run
    from dse.sweep.sweep import sweep as sweep
    from dse.timing.amali import Amali as Amali
    from dse.timing.roofline import Roofline as Roofline
    from dse.timing.timing import Timing as Timing
    from dse.workload.kernel import Kernel as Kernel
    from dse.workload.parse import load_workload as load_workload
    from dse.workload.workload import Workload as Workload


def __getattr__(name: str) -> Any:
    if name in _CALLABLE_FOLDERS:
        return import_module(f"dse.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'dse' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
