"""A metric of a workload as a pure function of a GPU's record, to be compiled, differentiated and mapped."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array, lax

from dse.base.compilation import Options, derivatives_quick_to_compile
from dse.base.errors import InputError, accepted, expect
from dse.evaluate import steps
from dse.evaluate.batching import float_type
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.fastest import choose
from dse.evaluate.run import model_of
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
from dse.power.models import PowerChoice, power_of
from dse.space.metrics import MORE_IS_BETTER, metric_unit, workload_metrics
from dse.timing.timing import TimingModel
from dse.workload.parse import load_workload
from dse.workload.target import Target
from dse.workload.workload import Workload

OF_DIE = ("die_mm2", "die_usd", "memory_usd")
"""Metrics of a GPU whatever it runs."""


class WorkloadObjective:
    """A metric as a pure function of one GPU's record: call it, or give it to jax.jit, jax.grad and jax.vmap.

    XLA takes a minute for a large program with its derivatives. ``compiler_options`` shorten that to seconds:
    ``jax.jit(jax.grad(f), compiler_options=f.compiler_options)``, which :meth:`value_and_grad` does.
    """

    def __init__(self, function: Callable[[Gpu], Array], metric: str) -> None:
        self._function = function
        self.metric, self.unit = metric, metric_unit(metric) or metric_unit(f"workload.{metric}")

    def __call__(self, gpu: Gpu) -> Array:
        """Return the metric on a GPU, a scalar in ``unit``; raises InputError where it is no record."""
        expect("gpu", gpu, Gpu, "give a record, as dse.load_gpu('h100_sxm')")
        return self._function(gpu)

    def __repr__(self) -> str:
        return f"WorkloadObjective({self.metric} [{self.unit}])"

    @property
    def compiler_options(self) -> Options | None:
        """The compiler's options under which such a program is soon compiled; None: XLA's own."""
        return derivatives_quick_to_compile()

    @cached_property
    def value_and_grad(self) -> Callable[[Gpu], tuple[Array, Gpu]]:
        """What returns the metric and its derivatives along every attribute, a record, compiled on its first call."""
        return jax.jit(jax.value_and_grad(self._function), compiler_options=self.compiler_options)


def objective(
    workload: str | Workload,
    metric: str,
    around: str | Path | Gpu | GpuSheet = "h100_sxm",
    model: str | TimingModel | None = None,
    power: str | PowerChoice | None = None,
) -> WorkloadObjective:
    """Return a metric ('dse show metrics') as a pure function of one GPU's record, a scalar.

    It can be compiled (jax.jit), differentiated (jax.grad) and mapped (jax.vmap). Each operator takes its fastest
    candidate, and the derivative is that of the chosen ones. ``around``: the GPU whose calibration is taken, and for
    whose generation kernels are made; at its record the function is what :func:`dse.run` answers, but for the check of
    memory. A GPU that cannot run the workload has an infinite time, no token a second, and no slope. Raises InputError.
    """
    expect("metric", metric, str, "give the name of a metric, as 'tbt_ms'")
    if metric in OF_DIE:
        return WorkloadObjective(_of_die(metric), metric)
    sheet = sheet_of(around, "around")
    model = model_of(model, workload, sheet)
    if not isinstance(workload, Workload):
        workload = load_workload(workload, Target.of([sheet.numbers()], model.library), gpus=[sheet])
    if workload.recorded:
        raise InputError("workload: a recorded trace is simulated for one GPU; give a workload whose kernels are made")
    names = [name for name in workload_metrics(workload) if name not in ("memory_gb", "dram_gb")]
    if metric not in names:
        raise InputError(f"metric = {metric!r} is not accepted; {accepted(metric, [*names, *OF_DIE], most=20)}")
    return WorkloadObjective(_of_workload(evaluation_of(workload, model, power_of(power)), metric), metric)


def _of_die(metric: str) -> Callable[[Gpu], Array]:
    area, cost = DieArea.from_table(), DieCost.from_table("negative_binomial")

    def of_gpu(gpu: Gpu) -> Array:
        square_mm = area.total(gpu)
        priced = cost(square_mm, gpu)
        return {"die_mm2": square_mm, "die_usd": priced.cost_usd, "memory_usd": priced.memory_usd}[metric]

    return of_gpu


def _of_workload(evaluation: Evaluation, metric: str) -> Callable[[Gpu], Array]:
    never = 0.0 if metric in MORE_IS_BETTER else jnp.inf

    workload, model, power = evaluation.workload, evaluation.model, evaluation.power
    runs = {phase.name: steps.phase_run(workload, phase.name, len(workload.operators)) for phase in workload.phases}

    def of_gpu(gpu: Gpu) -> Array:
        gpu, kernels = jax.tree.map(lambda x: jnp.asarray(x, float_type()), (gpu, workload.kernels))
        asked = lax.stop_gradient(gpu)
        # Kernel by kernel in a loop: a program of all of them at once takes minutes to compile with its derivatives.
        times = lax.map(lambda kernel: model.nanoseconds(kernel, asked), kernels)
        chosen, can_run = choose(workload, [times[part][:, None] for part in workload.slices])
        picked = jax.tree.map(lambda x: x[chosen[0]], kernels)
        timing, watts = lax.map(lambda kernel: steps.evaluate_kernel(model, power.model, kernel, gpu), picked)
        board = power.model, power.limit
        phases = {name: steps.settle_phase(*board, timing, watts, run, gpu) for name, run in runs.items()}
        value = steps.phase_metrics(workload, phases)[metric]
        return jnp.where(jnp.all(can_run > 0), value, never)

    return of_gpu
