"""How far off times of products in narrow types and of experts may be: the errors of their own implementations."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from dse.base.error_interval import ErrorInterval
from dse.hardware.own_gpus import matching_name
from dse.hardware.presets import GpuSheet
from dse.timing.calibration import LEAST_ROWS, UNSEEN, implementation_calibration, shipped_implementations
from dse.timing.error_quantiles import NO_RELEASE, ErrorQuantiles
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator
from dse.workload.operators.expert_products import EXPERTS
from dse.workload.operators.forms import usual_form
from dse.workload.operators.narrow_products import NARROW
from dse.workload.workload import Workload

WORDS = {NARROW: "in narrow types", EXPERTS: "of experts"}
"""What products of a kind are called."""


def fitted_products(operator: Operator) -> set[str]:
    """Return the calibrated implementations of narrow products and of experts that all kernels of an operator are of,
    in its usual form; none where some are of others."""
    (operator,) = usual_form([operator]) or [operator]
    kernels = [c.kernel for c in operator.candidates if isinstance(c.kernel, Kernel)]
    names = {IMPLEMENTATIONS[int(kernel.implementation)] for kernel in kernels}
    known = {name for name in names if KINDS[name] in (NARROW, EXPERTS) and name in shipped_implementations()}
    return known if known == names and len(kernels) == len(operator.candidates) else set()


def with_fitted_products(interval: ErrorInterval, workloads: Sequence[Workload], gpu: GpuSheet) -> ErrorInterval:
    """Return the interval of times whose products are of narrow types in part: the widest of its own and theirs, on a
    GPU that they were measured on or on any other; of workloads without an engine theirs for any framework."""
    names = sorted(set().union(*(fitted_products(o) for w in workloads for o in w.operators)))
    unnamed = any(w.engine is None for w in workloads)
    told = [found for name in names if (found := _quantiles(name, gpu, interval.anywhere, unnamed)) is not None]
    if not told:
        return interval
    low, high = exp(-max(r.q90 for r in told)), exp(-min(r.q10 for r in told))
    source = f"{interval.source}; products {_kinds(names)} {_words(told)}"
    return replace(interval, low=min(low, interval.low), high=max(high, interval.high), source=source)


def _kinds(names: Sequence[str]) -> str:
    """What products of some implementations are, in words."""
    kinds = {KINDS[name] for name in names}
    return " and ".join(word for kind, word in WORDS.items() if kind in kinds)


def _words(told: Sequence[ErrorQuantiles]) -> str:
    if any(r.way == NO_RELEASE for r in told):
        return "of any framework"
    return "on GPUs or of frameworks left out" if any(r.gpu == UNSEEN for r in told) else "in shapes left out"


def _quantiles(name: str, gpu: GpuSheet, anywhere: bool, unnamed: bool) -> ErrorQuantiles | None:
    """The errors of an implementation on a GPU, elsewhere those of GPUs and frameworks that its fit has not seen; where
    it stands for that of an ``unnamed`` framework, those of any, if they are known."""
    known = implementation_calibration(name)
    place = "" if anywhere and gpu.name not in known.gpus else matching_name(gpu, known.gpus, ())
    rows = [r for r in known.error_quantiles if r.regime == "all" and r.n >= LEAST_ROWS]
    of_any, own = ([r for r in rows if (r.way == NO_RELEASE) == no] for no in (True, False))
    if unnamed and of_any:
        return max(of_any, key=lambda r: r.n)
    mine = [r for r in own if place and r.gpu == place] or [r for r in own if r.gpu == UNSEEN]
    return max(mine, key=lambda r: r.n, default=None)
