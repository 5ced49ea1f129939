"""A batch design-space explorer for GPUs: state a space and a workload, get the Pareto set with its reasons.

The public names are loaded on first use (PEP 562), so that ``import dse`` imports nothing heavy.
"""

from importlib import import_module
from time import time_ns as _now_ns
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_IMPORTED_NS = _now_ns()  # before any other module of the package (dse.base.kept.user_cache)

_HOME = {
    "InputError": "dse.base.errors",
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
    "Quantity": "dse.base.quantity",
    "calibrate_timing": "dse.calibration.timing.gpu_timing",
    "calibrate_power": "dse.calibration.power.answer",
    "calibrate_engine": "dse.calibration.engine.calibrate",
    "validate": "dse.validation.validate",
    "predict": "dse.prediction.predict",
    "scale": "dse.scaling.scale",
    "trace": "dse.evaluate.trace",
    "report": "dse.reports.redraw",
    "objective": "dse.evaluate.objective",
    "WorkloadObjective": "dse.evaluate.objective",
    "measure": "dse.measurement.measure",
    "run": "dse.evaluate.run",
    "RunResult": "dse.evaluate.run",
    "SweepResult": "dse.grid.result",
    "SearchResult": "dse.pareto.search_result",
    "search": "dse.pareto.search",
    "ParetoSampler": "dse.pareto.pareto_sampler",
    "SpaceObjective": "dse.pareto.space_objective",
    "sweep": "dse.grid.sweep",
    "sweep_shard": "dse.grid.part",
    "merge": "dse.grid.merge",
    "explain": "dse.explanation.explain",
    "Explanation": "dse.explanation.explain",
    "compare": "dse.explanation.compare",
    "Comparison": "dse.explanation.compare",
    "axis_verdicts": "dse.explanation.axis_verdicts",
    "AxisVerdicts": "dse.explanation.axis_verdicts",
    "verdict_sentences": "dse.reports.sweep.verdicts",
    "compare_gpus": "dse.explanation.gpu_comparison",
    "GpuComparison": "dse.explanation.gpu_comparison",
    "assumed_numbers": "dse.reports.sweep.assumed",
    "AssumedEffects": "dse.explanation.assumed_effects",
    "pareto_mask": "dse.base.pareto_filter",
}

__all__ = [*sorted(_HOME), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from dse.base.errors import InputError as InputError
    from dse.base.pareto_filter import pareto_mask as pareto_mask
    from dse.base.quantity import Quantity as Quantity
    from dse.calibration.engine.calibrate import calibrate_engine as calibrate_engine
    from dse.calibration.power.answer import calibrate_power as calibrate_power
    from dse.calibration.timing.gpu_timing import calibrate_timing as calibrate_timing
    from dse.evaluate.objective import WorkloadObjective as WorkloadObjective
    from dse.evaluate.objective import objective as objective
    from dse.evaluate.run import RunResult as RunResult
    from dse.evaluate.run import run as run
    from dse.evaluate.trace import trace as trace
    from dse.explanation.assumed_effects import AssumedEffects as AssumedEffects
    from dse.explanation.axis_verdicts import AxisVerdicts as AxisVerdicts
    from dse.explanation.axis_verdicts import axis_verdicts as axis_verdicts
    from dse.explanation.compare import Comparison as Comparison
    from dse.explanation.compare import compare as compare
    from dse.explanation.explain import Explanation as Explanation
    from dse.explanation.explain import explain as explain
    from dse.explanation.gpu_comparison import GpuComparison as GpuComparison
    from dse.explanation.gpu_comparison import compare_gpus as compare_gpus
    from dse.grid.merge import merge as merge
    from dse.grid.part import sweep_shard as sweep_shard
    from dse.grid.result import SweepResult as SweepResult
    from dse.grid.sweep import sweep as sweep
    from dse.hardware.area import DieArea as DieArea
    from dse.hardware.gpu import Gpu as Gpu
    from dse.hardware.presets import load_gpu as load_gpu
    from dse.measurement.measure import measure as measure
    from dse.pareto.pareto_sampler import ParetoSampler as ParetoSampler
    from dse.pareto.search import search as search
    from dse.pareto.search_result import SearchResult as SearchResult
    from dse.pareto.space_objective import SpaceObjective as SpaceObjective
    from dse.prediction.predict import predict as predict
    from dse.reports.redraw import report as report
    from dse.reports.sweep.assumed import assumed_numbers as assumed_numbers
    from dse.reports.sweep.verdicts import verdict_sentences as verdict_sentences
    from dse.scaling.scale import scale as scale
    from dse.space.space import Space as Space
    from dse.space.space import load_space as load_space
    from dse.timing.amali import Amali as Amali
    from dse.timing.roofline import Roofline as Roofline
    from dse.timing.timing import Timing as Timing
    from dse.validation.validate import validate as validate
    from dse.workload.kernel import Kernel as Kernel
    from dse.workload.parse import load_workload as load_workload
    from dse.workload.workload import Workload as Workload


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dse' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
