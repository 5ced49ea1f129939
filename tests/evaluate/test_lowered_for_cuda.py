"""Every program lowers for a CUDA device on any machine: no callback to the host, no 64-bit number, no foreign call.

Programs of designs compute in 32 bits. Fits of an engine's costs and of AccelWattch compute in 64, on purpose.
"""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.gpu.programs import stage_arguments, traced_space
from benchmarks.scaling import cheapest, main_space
from dse.calibration.timing import fit
from dse.evaluate import shared_programs, steps
from dse.evaluate.device_programs import lowered_text
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.grid.sweep_run import evaluator_of
from dse.hardware.presets import preset_sheet
from dse.space.space import Space, space_from_mapping
from dse.timing.amali import Amali
from tests.conftest import SMALL

CUDA = [SimpleNamespace(platform="gpu")]
"""A device that nothing is compiled for."""

OWN = {"__gpu$xla.gpu.triton", "xla.gpu.triton", "triton_kernel_call"}
"""Calls of kernels that this project writes."""


def refused(text: str) -> set[str]:
    """What no program may hold."""
    calls = set(re.findall(r"custom_call @([\w.$]+)", text)) - OWN
    wide = set(re.findall(r"tensor<(?:[0-9?]+x)*(f64|i64|complex<f64>)>", text)) & {"f64", "complex<f64>"}
    # From a word's begin alone: a megabyte of a constant's digits is one word.
    return calls | wide | set(re.findall(r"\b\w*callback\w*", text))


def swept(space: Space, keep: str = "front") -> str:
    return evaluator_of(space, keep, CUDA).evaluator.lowered("cuda")


def searched(space: Space) -> str:
    return Evaluator(space, Reasons(space), devices=CUDA).lowered("cuda")


def lowered(function: Callable[..., object], *arguments: object) -> str:
    return lowered_text(function, "cuda", *arguments)


def test_what_is_refused_is_found() -> None:
    def called(x: jax.Array) -> jax.Array:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    assert any("callback" in word for word in refused(jax.jit(called).lower(jnp.ones(3)).as_text()))
    assert refused(lowered(jnp.linalg.cholesky, jnp.eye(3)))
    with jax.enable_x64(True):
        assert refused(lowered(jnp.sin, jnp.ones(3, float))) == {"f64"}
    assert not refused(lowered(jnp.sin, jnp.ones(3)))


def test_a_sweep_that_keeps_the_front(tmp_path: Path) -> None:
    """What makes and reduces designs on the device, too."""
    text = evaluator_of(cheapest(10**6, tmp_path), "front", CUDA).evaluator.lowered("cuda")
    assert not refused(text)
    assert "scatter" in text


@pytest.mark.parametrize("keep", ["front", "all"])
def test_the_cheapest_spaces_sweep(tmp_path: Path, keep: str) -> None:
    assert not refused(swept(cheapest(10**6, tmp_path), keep))


def test_a_traced_spaces_sweep(tmp_path: Path) -> None:
    assert not refused(swept(traced_space(tmp_path)))


def test_a_space_of_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dse.evaluate.by_workload.MOST_DESIGNS", 0)
    assert not refused(searched(space_from_mapping(SMALL, "here", "small")))


@pytest.mark.slow
def test_the_main_space() -> None:
    assert not refused(swept(main_space(0)))
    assert not refused(swept(main_space(0), "all"))
    assert not refused(searched(main_space(0)))


def test_a_stage_of_a_calibration() -> None:
    assert not refused(lowered(fit._stage, *stage_arguments()))


def test_programs_that_spaces_share() -> None:
    kernels = jax.tree.map(lambda x: np.asarray(x, np.float32), _kernels())
    gpus = jax.tree.map(lambda x: np.full(shared_programs.DESIGNS, x, np.float32), preset_sheet("h100_sxm").record())
    assert not refused(lowered(lambda k, g: steps.times(Amali(), k, g), kernels, gpus))


def _kernels() -> object:
    space = space_from_mapping(SMALL, "here", "small")
    return space.workloads[0].kernels
