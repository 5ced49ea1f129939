"""The programs that are compiled: those of a sweep, of a search and of a calibration, through their own entries.

Nothing is written here a second time: what a sweep would run on this device is what its evaluator compiles for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.scaling import cheapest, main_space
from benchmarks.traces import streaming, write
from dse.calibration.timing import fit
from dse.calibration.timing.stages import SHORTLIST
from dse.evaluate.device_programs import OwnProgram
from dse.grid.shard import shards
from dse.grid.sweep_program import SweepProgram
from dse.grid.sweep_run import evaluator_of
from dse.hardware.presets import preset_sheet
from dse.pareto.batch_model import BatchModel
from dse.space.space import Space, space_from_mapping

CHEAPEST_DESIGNS = 10**8
SEARCH_EVALUATIONS = 10**7
CALIBRATION_ROWS = 1536
"""Rows of a stage: those that are fitted of a device and an operator at most, in whole batches."""


@dataclass(frozen=True)
class Call:
    """A call of a compiled program, to be made again: ``designs`` that it evaluates; ``make`` does not wait for it."""

    designs: int
    make: Callable[[], Any]


@dataclass(frozen=True)
class Subject:
    """A program to compile: ``designs`` a call evaluates, ``pairs`` of kernels and designs timed for each; ``call``:
    lets the sweep or search work, once it is compiled, and returns the last full call that it made."""

    designs: int
    pairs: int
    compile: Callable[[], None]
    call: Callable[[], Call] | None = None


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

    def call() -> Call:
        every = shards(space.size, evaluator.chunk_size)

        def work() -> None:  # at a place in the grid, with what is learned at another one
            evaluator.shard(every[0], False)
            evaluator.shard(every[len(every) // 2], False)

        calls = [Call(int(one.args[2].count.sum()), one) for one in _calls(SweepProgram, "call", work)]
        return max(reversed(calls), key=lambda one: one.designs)

    return Subject(evaluator.chunk_size, _pairs(space), evaluator.compile, call)


def searched(space: Space, device: Any) -> Subject:
    """Return what evaluates a generation of a search."""
    model = BatchModel(space, expected=SEARCH_EVALUATIONS, devices=[device])
    model.trace()

    def call() -> Call:
        some = np.arange(min(model.chunk, space.size))
        return Call(len(some), _calls(OwnProgram, "__call__", lambda: model(some))[-1])

    return Subject(model.chunk, _pairs(space), model.compile, call)


def _calls(program: type, method: str, work: Callable[[], Any]) -> list[partial[Any]]:
    """Return the calls of a kind of program that are made by ``work``, to be made again."""
    plain, calls = getattr(program, method), list[partial[Any]]()

    def kept(*arguments: Any) -> Any:
        calls.append(partial(plain, *arguments))
        return plain(*arguments)

    with patch.object(program, method, kept):
        work()
    return calls


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


def evaluating(folder: Path) -> Mapping[str, Callable[[Any], Subject]]:
    """Return the programs that evaluate designs by name, each called with the device; ``folder`` takes their inputs."""
    return {
        "main space": lambda device: swept(main_space(0), device),
        "cheapest space": lambda device: swept(cheapest(CHEAPEST_DESIGNS, folder), device),
        "traced space": lambda device: swept(traced_space(folder), device),
        "search generation": lambda device: searched(main_space(0), device),
    }


def subjects(folder: Path) -> Mapping[str, Callable[[Any], Subject]]:
    """Return all programs so."""
    return {**evaluating(folder), "calibration step": calibrated}
