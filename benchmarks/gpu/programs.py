"""The programs that are compiled: those of a sweep, of a search and of a calibration, through their own entries.

Nothing is written here a second time: what a sweep would run on this device is what its evaluator compiles for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.scaling import cheapest, main_space
from benchmarks.traces import streaming, write
from dse.calibration.timing import fit
from dse.calibration.timing.stages import SHORTLIST
from dse.grid.sweep_run import evaluator_of
from dse.hardware.presets import preset_sheet
from dse.pareto.batch_model import BatchModel
from dse.space.space import Space, space_from_mapping

CHEAPEST_DESIGNS = 10**8
SEARCH_EVALUATIONS = 10**7
CALIBRATION_ROWS = 1536
"""Rows of a stage: those that are fitted of a device and an operator at most, in whole batches."""


@dataclass(frozen=True)
class Subject:
    """A program to compile: ``designs`` a call evaluates, ``pairs`` of kernels and designs timed for each."""

    designs: int
    pairs: int
    compile: Callable[[], None]


def traced_space(folder: Path) -> Space:
    """Return a space of a million designs that run a recorded program: a kernel that streams."""
    trace = folder / "trace"
    trace.mkdir()
    write(trace, streaming)
    axes = {
        "dram_bandwidth_gbs": {"from": 200, "to": 1199, "step": 1},
        "boost_clock_mhz": {"from": 1000, "to": 1999, "step": 1},
    }
    objectives = [{"value": "trace.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}]
    content = {"base": "rtx_2060", "axes": axes, "workloads": {"trace": "trace"}, "objectives": objectives}
    return space_from_mapping(content, "benchmark", "traced", folder)


def swept(space: Space, device: Any) -> Subject:
    """Return what a sweep of a space runs on a device, its front kept."""
    evaluator = evaluator_of(space, "front", [device])
    evaluator.trace()
    return Subject(evaluator.chunk_size, _pairs(space), evaluator.compile)


def searched(space: Space, device: Any) -> Subject:
    """Return what evaluates a generation of a search."""
    model = BatchModel(space, expected=SEARCH_EVALUATIONS, devices=[device])
    model.trace()
    return Subject(model.chunk, _pairs(space), model.compile)


def calibrated(device: Any) -> Subject:
    """Return a stage of a calibration: the steps of its descent, each over all rows and their candidates.

    A design stands for a row of a step.
    """
    here = jax.sharding.SingleDeviceSharding(device)

    def compile() -> None:
        jax.jit(fit._stage, in_shardings=here, out_shardings=here).lower(*stage_arguments()).compile()

    return Subject(CALIBRATION_ROWS * fit.STEPS, SHORTLIST, compile)


def stage_arguments() -> tuple[Any, ...]:
    """Return the shapes that a stage of a calibration is called with."""

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)

    kernels = jax.tree.map(lambda _: array(CALIBRATION_ROWS, SHORTLIST), main_space(0).workloads[0].kernels)
    gpus = jax.tree.map(lambda _: array(CALIBRATION_ROWS), preset_sheet("h100_sxm").record())
    each = {name: array(CALIBRATION_ROWS) for name in fit.FitRows._fields}
    each["family"] = jax.ShapeDtypeStruct((CALIBRATION_ROWS,), jnp.arange(1).dtype)
    rows = fit.FitRows(**(each | {"kernels": kernels, "gpus": gpus}))
    z = array(len(fit.NAMES))
    return z, z, jax.tree.map(np.asarray, fit.priors()), rows, array()


def _pairs(space: Space) -> int:
    return sum(workload.candidate_count for workload in space.workloads if not workload.recorded)


def subjects(folder: Path) -> Mapping[str, Callable[[Any], Subject]]:
    """Return the programs by name, each called with the device; ``folder`` takes their inputs."""
    return {
        "main space": lambda device: swept(main_space(0), device),
        "cheapest space": lambda device: swept(cheapest(CHEAPEST_DESIGNS, folder), device),
        "traced space": lambda device: swept(traced_space(folder), device),
        "search generation": lambda device: searched(main_space(0), device),
        "calibration step": calibrated,
    }
