"""The timing models on traces: Eq. (16), MDM and the roofline of a recorded kernel, on a batch of designs.

Traces are batched inside the models, since the recurrence over instructions wants designs in the minor axis
(:mod:`dse.timing.traced.scoreboard`). Fields of a ``gpu`` are scalars, or arrays of shape (designs,).
"""

from functools import singledispatch

import jax
import jax.numpy as jnp
from jax import Array

from dse.base.errors import InputError
from dse.hardware.gpu import Gpu
from dse.timing.amali import Amali, Terms
from dse.timing.interval import Causes, Hiding, IntervalCycles, Stalls, add_up, interval_cycles, resident_warps
from dse.timing.mdm import Demand, Mdm, composed, resident_waves
from dse.timing.mdm import interval_cycles as mdm_cycles
from dse.timing.occupancy import Waves, waves
from dse.timing.roofline import Roofline
from dse.timing.sustained import Costs
from dse.timing.timing import Timing, TimingModel
from dse.timing.traced.traced_intervals import (
    Segmented,
    View,
    Warp,
    designs_shape,
    has_tensor_types,
    timed,
    trace_clock,
    view,
    warp,
)
from dse.traces.traced_kernel import TracedKernel
from dse.workload.kernel import RecordedKernel


@singledispatch
def on_trace(model: TimingModel, kernel: RecordedKernel, gpu: Gpu) -> Timing:
    """Return the cycles by cause of a traced kernel on a batch of designs, arrays of shape (designs,).

    Raises InputError where the model does not time traces.
    """
    raise InputError(f"{type(model).__name__.lower()} does not time traces ({kernel.name})")


@singledispatch
def trace_latencies(model: TimingModel, kernel: RecordedKernel, gpu: Gpu) -> Array | None:
    """Return the latency of each row of a traced kernel [cycle], shape (rows, *designs).

    They alone decide its warp's stalls. None where the model does not ask for them.
    """
    return None


@on_trace.register
def _(model: Amali, kernel: TracedKernel, gpu: Gpu) -> Timing:
    """On the SM with the most CTAs (docs/model/timing_amali.md 13).

    A sub-core holds ceil(W/Q) warps like the representative one, or the instructions that the trace counts for the
    busiest, where those are more (a departure: the representative's own SM and sub-core would lose the stalls of a
    busier one, 12.13). Of a calibration only the shares of rates and ``overlap`` apply, those of matrix products: a
    trace holds its own prologue and epilogue.
    """
    model = model.of(0)
    gpu = model.sustained.derated(gpu)
    return timed(kernel, lambda form: _amali(model, form, gpu))


@trace_latencies.register
def _(model: Amali, kernel: TracedKernel, gpu: Gpu) -> Array:
    model = model.of(0)
    return _amali_view(model, kernel, model.sustained.derated(gpu)).latency


def _amali_view(model: Amali, kernel: TracedKernel, gpu: Gpu) -> View:
    return view(
        kernel,
        gpu,
        trace_clock(kernel, gpu),
        tensor_modifiers=model.tensor_modifiers,
        tensor_latency_measured=model.tensor_latency_measured,
        latency_is_total=model.latency_is_total,
    )


def _amali(model: Amali, kernel: TracedKernel, gpu: Gpu) -> tuple[Timing, Array]:
    """Return AMALI's timing of a traced kernel on derated designs, and where it is exact."""
    seen, grid = _amali_view(model, kernel, gpu), waves(kernel, gpu)
    at = warp(kernel, seen)
    on_sm = _amali_waves(model, gpu, grid, kernel.warps, seen, at)
    busiest, hosted = seen.busiest / gpu.issue_rate, seen.hosted / gpu.issue_rate
    if model.with_divergence:
        on_sm = on_sm._replace(issue=jnp.maximum(on_sm.issue, busiest))
    terms = Terms(
        on_sm.exposed(Stalls.of(at.lone.drain, at.lone.drain_cause)),  # once (12.3)
        grid=model.launch.per_grid(kernel),
        launch=model.launch.per_launch(kernel),
        divergence=jnp.minimum(busiest - hosted, on_sm.issue),  # ID, Eq. (29)
        messages=jnp.zeros(()),
        clock=trace_clock(kernel, gpu),
        feasible=grid.fits * has_tensor_types(kernel, gpu),
    )
    _, timing = model.equation_16(terms, Costs(), gpu, seen.memory, seen.l2_bytes)
    return _on_all_designs(timing, gpu), at.exact


def _amali_waves(model: Amali, gpu: Gpu, grid: Waves, warps: float, seen: View, at: Warp) -> IntervalCycles:
    """Return the cycles of all waves: the warp's intervals, each with the resident warps of full and last wave."""
    residents = [
        (resident_warps(gpu, ctas, all_ctas, warps), times)
        for ctas, all_ctas, times in (
            (grid.resident, grid.full_ctas, grid.full),
            (grid.rest, grid.rest_ctas, jnp.where(grid.rest > 0, 1.0, 0.0)),
        )
    ]
    hiding = Hiding(at.lone.issue_probability, at.lone.mean_instructions)

    def close(counts: Segmented, stall: Array, cause: Array) -> tuple[Array, Causes]:
        mem = seen.memory._replace(dram_share=counts.dram_share)
        both = add_up(
            interval_cycles(
                counts.interval,
                Stalls.of(stall, cause),
                counts.busiest_pipe,
                gpu,
                resident,
                hiding,
                mem,
                jnp.zeros(()),
                single_warp_literal=model.single_warp_literal,
            ).scaled(times)
            for resident, times in residents
        )
        return both.issue, both.causes

    return IntervalCycles.of(*at.over_intervals(close))


@on_trace.register
def _(model: Mdm, kernel: TracedKernel, gpu: Gpu) -> Timing:
    return timed(kernel, lambda form: _mdm(form, gpu))


@trace_latencies.register
def _(model: Mdm, kernel: TracedKernel, gpu: Gpu) -> Array:
    return view(kernel, gpu, trace_clock(kernel, gpu), tensor_modifiers=False).latency


def _mdm(kernel: TracedKernel, gpu: Gpu) -> tuple[Timing, Array]:
    """Return MDM's timing of a traced kernel, and where it is exact."""
    clock = trace_clock(kernel, gpu)
    seen = view(kernel, gpu, clock, tensor_modifiers=False)
    grid = waves(kernel, gpu)
    at = warp(kernel, seen)
    hiding = Hiding(at.lone.issue_probability, at.lone.mean_instructions)

    def close(counts: Segmented, stall: Array, cause: Array) -> tuple[Array, Causes]:
        mem = seen.memory._replace(dram_share=counts.dram_share)
        demand = Demand(counts.instructions, counts.load_line_bytes, counts.store_line_bytes)
        both = add_up(
            mdm_cycles(demand, Stalls.of(stall, cause), gpu, wave, hiding, mem).scaled(wave.times)
            for wave in resident_waves(gpu, grid, kernel.warps)
        )
        return both.issue, both.causes

    cycles = IntervalCycles.of(*at.over_intervals(close)).later(at.lone.drain)
    feasible = grid.fits * has_tensor_types(kernel, gpu)
    return _on_all_designs(composed(cycles, clock, seen.memory, jnp.zeros(()), feasible), gpu), at.exact


@on_trace.register
def _(model: Roofline, kernel: TracedKernel, gpu: Gpu) -> Timing:
    """The busiest math pipe of all warps, each taken as the representative one, in a grid that fills the GPU evenly."""
    clock = trace_clock(kernel, gpu)
    seen = view(kernel, gpu, clock)
    whole = jax.tree.map(lambda x: jnp.sum(x, axis=0), seen.counts)
    arithmetic = whole.busiest_pipe * kernel.ctas * kernel.warps / (gpu.sm_count * gpu.subcores_per_sm)
    feasible = waves(kernel, gpu).fits * has_tensor_types(kernel, gpu)
    timing = model.compose(kernel, clock, seen.memory, arithmetic, seen.l2_bytes, jnp.zeros(()), feasible)
    return _on_all_designs(timing, gpu)


def _on_all_designs(timing: Timing, gpu: Gpu) -> Timing:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, designs_shape(gpu)), timing)
