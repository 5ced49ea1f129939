"""Evaluation of many designs: the only file that knows blocks and devices.

The models are mapped over (designs, kernels) in :mod:`dse.sweep.candidates`; a chunk runs in blocks whose (designs x
kernels) arrays fit a core's cache, inside one jitted program (spec speed, section 8).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.compiling import LEAST, Options
from dse.errors import InputError
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.gpu import Gpu
from dse.hardware.peak import peak_tflops
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.power.sequence import in_sequence
from dse.space.designs import baseline
from dse.space.links import OF_BASE
from dse.space.metrics import design_metrics, energy_metrics, time_metrics, workload_metrics
from dse.space.space import Space
from dse.sweep.candidates import Models, float_type, judge_workload
from dse.sweep.reasons import Reasons
from dse.timing.timing import Timing, causes_of
from dse.units import GIGA, MILLI, NANO
from dse.workload.workload import Workload

BLOCK = 1024
"""Designs evaluated together: with some 200 kernels a temporary array is 0.8 MB, less than a core's L2 cache."""

TRACE_BLOCK = 2048
"""Designs evaluated together where a workload is traced: its steps are short, so more designs share each."""

CHUNK = 32768
"""Designs a call evaluates at most: a multiple of both blocks."""

Columns = Mapping[str, Any]
"""Attribute or result -> array of shape (designs,)."""


@dataclass(frozen=True)
class PhaseResult:
    """One phase of a workload on a batch of designs, each array of shape (designs,).

    ``stack`` [ms] by cause at the clock that the power limit leaves; ``joules`` [J] of one board; ``clock``: share of
    the requested clock; ``dram_bytes`` [B].
    """

    stack: dict[str, Array]
    joules: Array
    clock: Array
    dram_bytes: Array

    @property
    def time_ms(self) -> Array:
        """Time of one run of the phase [ms]."""
        total = jnp.zeros_like(self.dram_bytes)
        for value in self.stack.values():
            total = total + value
        return total


def gpu_batch(base: Mapping[str, float], columns: Columns) -> tuple[Gpu, Gpu]:
    """Return the designs' records and the ``in_axes`` of their fields: 0 where ``columns`` vary it, else None."""
    names = [field.name for field in fields(Gpu)]
    with jax.ensure_compile_time_eval():  # known numbers, of which programs are made simpler
        values = {name: jnp.asarray(base[name], dtype=float) for name in names if name not in columns}
    values |= {name: columns[name] for name in names if name in columns}
    axes = {name: 0 if name in columns else None for name in names}
    return Gpu(**values), Gpu(**axes)  # pyright: ignore[reportArgumentType]


def phase_result(
    choice: PowerChoice, workload: Workload, phase: str, timing: Timing, power: Power, gpus: Gpu
) -> PhaseResult:
    """Return one phase of a workload: its kernels one after another, each as often as its operator runs, and the time
    that the GPU waits for a serving engine's host."""
    repeats = jnp.asarray(workload.phase_repeats(phase), dtype=float)
    repeats = jnp.pad(repeats, (0, timing.clock_ghz.shape[1] - len(repeats)))  # those that fill vectors never run
    run = in_sequence(choice, timing, power, repeats, gpus, workload.host(phase))
    stack = {cause: value * (NANO / MILLI) for cause, value in run.stack.items()}
    return PhaseResult(stack, run.joules, run.clock, jnp.sum(timing.dram_bytes * repeats, axis=1))


def workload_columns(workload: Workload, phases: Mapping[str, PhaseResult]) -> dict[str, Array]:
    """Return the metrics and the stack [ms] of a workload on a batch of designs, by column name."""
    runs = {phase.name: phase.runs for phase in workload.phases}
    times = {name: phase.time_ms for name, phase in phases.items()}
    columns = time_metrics(workload, times)
    columns |= energy_metrics(workload, times, {name: (phase.joules, phase.clock) for name, phase in phases.items()})
    columns["dram_gb"] = sum(phases[name].dram_bytes * count for name, count in runs.items()) / GIGA
    columns["memory_gb"] = jnp.full_like(columns["time_ms"], workload.memory.total / GIGA)
    for cause in causes_of(workload):
        parts = [phases[name].stack[cause] * count for name, count in runs.items() if cause in phases[name].stack]
        columns[f"{cause}_ms"] = sum(parts)
    return {f"{workload.name}.{name}": value for name, value in columns.items()}


class Evaluator:
    """A space's designs to results: call it with the columns of a chunk, axes and links, each of shape (designs,).

    Every result column has shape (designs,) and is finite. ``code`` is 0 where a design can run, else the number of the
    first reason why not (:class:`dse.sweep.reasons.Reasons`). ``chunk``: designs a call evaluates at most; a call with
    fewer takes as long.
    """

    def __init__(self, space: Space, reasons: Reasons, chunk: int = CHUNK) -> None:
        self.space = space
        traced = any(workload.traced for workload in space.workloads)
        self._block = min(TRACE_BLOCK if traced else BLOCK, chunk)
        self.chunk = _even(space.size, chunk, self._block)
        self._reasons = reasons
        self._base = space.base.numbers()
        self._models = Models(space.model, space.power)
        self._area, self._cost = DieArea.from_table(), DieCost.from_table(space.yield_model)
        self._of_base = space.of_base()
        self._compiled: dict[Any, Callable[[Columns, Columns], dict[str, Array]]] = {}

    def __call__(
        self, columns: Mapping[str, np.ndarray], names: Sequence[str] | None = None, device: Any = None
    ) -> dict[str, np.ndarray]:
        """Return the results of at most ``chunk`` designs, padded for the program and cut off again.

        ``names``: result columns to fetch, all by default; ``device``: where to evaluate, JAX's default by default.
        """
        wanted = result_columns(self.space) if names is None else names
        return self._call(columns, self.base_results, (*wanted, "code"), device or jax.local_devices()[0])

    def _call(self, columns: Columns, of_base: Columns, wanted: Sequence[str], device: Any) -> dict[str, np.ndarray]:
        count = len(next(iter(columns.values())))
        padding = (0, self.chunk - count)
        padded = {name: np.pad(np.asarray(c, float_type()), padding, mode="edge") for name, c in columns.items()}
        results = self._program(padded, device)(padded, of_base)
        return {name: np.asarray(results[name])[:count] for name in wanted}

    @cached_property
    def base_results(self) -> dict[str, np.ndarray]:
        """What objectives and constraints name of the base GPU's results, by name (``base.prefill.ttft_ms``), by the
        program that evaluates designs, so that the base itself equals it to the last digit.

        Raises InputError where the base has no such result.
        """
        if not self._of_base:
            return {}
        here = jax.local_devices()[0]
        found = self._call(baseline(self.space), self._unknown(), (*self._of_base, "code"), here)
        if self._reasons.is_blank(found["code"])[0]:
            why = self._reasons.texts(found["code"], baseline(self.space))[0]
            named = " and ".join(OF_BASE + name for name in self._of_base)
            raise InputError(
                f"{self.space.name}: {named} has no value, since the base GPU runs no such workload ({why})"
            )
        return {OF_BASE + name: np.asarray(found[name][0], float_type()) for name in self._of_base}

    def _unknown(self) -> dict[str, np.ndarray]:
        """Results of the base before they are known."""
        return {OF_BASE + name: np.ones((), float_type()) for name in self._of_base}

    def compile(self, names: Iterable[str], devices: Sequence[Any] | None = None) -> None:
        """Compile the program for columns called ``names``, ahead of the first call."""
        columns = {name: np.ones(self.chunk, float_type()) for name in names}
        devices = devices or jax.local_devices()[:1]
        with ThreadPoolExecutor(len(devices)) as pool:
            list(pool.map(lambda device: self._program(columns, device), devices))

    def _program(self, columns: Columns, device: Any) -> Callable[[Columns, Columns], dict[str, Array]]:
        """Return the program of one device: every device runs the same, on chunks of its own."""
        if device not in self._compiled:
            options = self._cpu_options() if device.platform == "cpu" else None
            here = jax.sharding.SingleDeviceSharding(device)
            jitted = jax.jit(self._in_blocks, in_shardings=here, out_shardings=here, compiler_options=options)
            self._compiled[device] = jitted.lower(dict(columns), self._unknown()).compile()
        return self._compiled[device]

    def _cpu_options(self) -> Options:
        """How to compile for a CPU: a block is evaluated before the faster program would be compiled."""
        return LEAST if self.space.size <= self._block else CPU_OPTIONS

    def _in_blocks(self, columns: Columns, of_base: Columns) -> dict[str, Array]:
        blocks = {name: jnp.reshape(values, (-1, self._block)) for name, values in columns.items()}
        results = jax.lax.map(partial(self.evaluate, of_base=of_base, simplified=True), blocks)
        return {name: jnp.reshape(values, (-1,)) for name, values in results.items()}

    def evaluate(self, columns: Columns, of_base: Columns, *, simplified: bool = False) -> dict[str, Array]:
        """Return the results of one block of designs (the program before jit: differentiable unless ``simplified``).

        ``of_base``: :attr:`base_results`.
        """
        gpus, axes = gpu_batch(self._base, columns)
        count = len(next(iter(columns.values())))
        results = self._untimed(gpus, axes, count) | dict(of_base)
        runs = []
        for workload in self.space.workloads:
            timing, power, can_run = judge_workload(self._models, workload, gpus, axes, count, simplified=simplified)
            phases = {
                p.name: phase_result(self.space.power, workload, p.name, timing, power, gpus) for p in workload.phases
            }
            results |= workload_columns(workload, phases)
            runs.append(can_run)
        results["total.time_ms"] = self.space.total_ms(results)
        code = self._reasons.codes(results, runs)
        results |= {o.name: o.expression(results, jnp) for o in self.space.objectives}
        kept = {name: results[name] for name in (*result_columns(self.space), *self._of_base)}
        # A design without a kernel has no time, one beyond a link's range no meaning: 0 here, empty in files.
        blank = self._reasons.is_blank(code)
        outputs = {name: jnp.where(blank, 0.0, jnp.broadcast_to(value, (count,))) for name, value in kept.items()}
        return outputs | {"code": code}

    def untimed(self, columns: Columns) -> dict[str, Any]:
        """Return what no workload decides, (designs,) or scalars: attributes, the base's too, areas, costs, peaks."""
        return self._untimed(*gpu_batch(self._base, columns), len(next(iter(columns.values()))))

    def _untimed(self, gpus: Gpu, axes: Gpu, count: int) -> dict[str, Any]:
        results: dict[str, Any] = {OF_BASE + name: value for name, value in self._base.items()}
        results |= {field.name: getattr(gpus, field.name) for field in fields(Gpu)}
        results["die_mm2"], results["die_usd"], results["memory_usd"] = self._die(gpus, axes, count)
        results |= {f"peak_{dtype}_tflops": peak_tflops(results, "tensor", dtype) for dtype in ("bf16", "fp8")}
        return results

    def _die(self, gpus: Gpu, axes: Gpu, count: int) -> tuple[Array, Array, Array]:
        """Area [mm2] and cost [USD] of the dies, and of the memory [USD]."""

        def one(gpu: Gpu) -> tuple[Array, Array, Array]:
            area = self._area.total(gpu)
            cost = self._cost(area, gpu)
            return area, cost.cost_usd, cost.memory_usd

        return jax.vmap(one, in_axes=(axes,), axis_size=count)(gpus)


def _even(size: int, most: int, block: int) -> int:
    """Return the designs of a chunk, whole blocks: of at most ``most``, as many chunks of one size leave the least."""
    chunks = -(-size // most)
    return -(-size // (chunks * block)) * block


def result_columns(space: Space) -> list[str]:
    """Return the columns that leave the program: objectives, design metrics, each workload's metrics and stack [ms]."""
    names = [o.name for o in space.objectives] + design_metrics()
    for workload in space.workloads:
        names += [f"{workload.name}.{metric}" for metric in workload_metrics(workload)]
        names += [f"{workload.name}.{cause}_ms" for cause in causes_of(workload)]
    return list(dict.fromkeys(names))


CPU_OPTIONS: Options = {
    "xla_cpu_enable_fast_math": True,
    "xla_cpu_enable_fast_min_max": True,
    "xla_cpu_prefer_vector_width": 512,
}
"""Fast-math lets the reductions over kernels vectorise, and a minimum that need not heed NaN is one instruction; every
value is finite, and whole numbers survive it (:func:`dse.numerics.floor_div`)."""
