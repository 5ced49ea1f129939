"""The total alone, by which candidates are compared, is what the stack adds up to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.interpreters.partial_eval import dce_jaxpr

from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_gpu, preset_sheet
from dse.space.shipped import find_space
from dse.space.space import load_space
from dse.timing.amali import Amali
from dse.timing.sustained import Sustained
from dse.timing.timing import TimingModel
from dse.workload.kernel import Interval, Kernel
from tests.programs import quick_jit


@quick_jit
def brief(model: Amali, kernels: Kernel, gpu: Gpu) -> Array:
    return jax.vmap(lambda kernel: model.nanoseconds(kernel, gpu))(kernels)


@quick_jit
def whole(model: Amali, kernels: Kernel, gpu: Gpu) -> Array:
    return jax.vmap(lambda kernel: TimingModel.nanoseconds(model, kernel, gpu))(kernels)


@pytest.mark.parametrize("gpu", ["h100_sxm", "a100_sxm_80gb"])
@pytest.mark.parametrize("calibrated", [pytest.param(False, marks=pytest.mark.slow), True])
def test_nanoseconds_are_the_total_of_the_stack(gpu: str, calibrated: bool) -> None:
    space = load_space(find_space("h100_tensor_core"))
    model = jax.tree.map(lambda x: jnp.asarray(x, float), space.model if calibrated else Amali())
    record = Gpu.from_attributes(
        {name: jnp.asarray(value, float) for name, value in preset_sheet(gpu).numbers().items()}
    )
    kernels = jax.tree.map(lambda *x: jnp.concatenate(x), *(w.kernels.as_arrays() for w in space.workloads))
    assert np.allclose(brief(model, kernels, record), whole(model, kernels, record), rtol=3e-6)


def operations(function: Callable[[Kernel, Gpu], Any]) -> int:
    """Operations that the results of a function need."""
    kernel = jax.tree.map(jnp.asarray, Kernel(Interval(), Interval(), Interval()))
    found = jax.make_jaxpr(function)(kernel, load_gpu("a100_sxm_80gb"))
    needed, _ = dce_jaxpr(found.jaxpr, [True] * len(found.out_avals))
    return len(needed.eqns)


def test_a_program_of_the_total_alone_holds_no_terms_of_causes() -> None:
    """One function computes both; what only the stack needs is dead where nobody asks for it."""
    model = Amali(sustained=Sustained(**COSTS))
    assert operations(model.nanoseconds) < 0.87 * operations(lambda kernel, gpu: model(kernel, gpu).cycles)


COSTS = {
    "prologue": 500.0, "wave": 90.0, "epilogue": 0.9, "overlap": 0.3, "write": 0.4, "split": 900.0, "queued": 0.5,
    "turnaround": 0.6, "lockstep": 0.7, "lanes": 0.8, "mixed": 0.2, "filling": 1.5, "alone": 1.3, "cta": 200.0,
    "exposed": 0.3, "tail": 0.5, "copy": 700.0, "copied": 1.4, "copied_row": 30.0,
}  # fmt: skip
READ, WRITTEN = {"cold_bytes": 3e7, "cold_distance": 1e15}, {"write_bytes": 2e7, "write_distance": 1e15}
MADE = {
    "adds up partial results": {"launches": 3.0},
    "copies operands": {"copies": 2.0, "copied_bytes": 1e7, "copied_rows": 4e3},
    "waits in series": {"serial_waits": 6.0},
    "of unequal length": {"ctas": 900.0, "longest": 1.7} | READ,
    "in two waves, reads and writes": {"ctas": 4000.0} | READ | WRITTEN,
    "of the L2": {"l2_bytes": 1e9},
    "sends messages": {"link_messages": 2.0, "link_bytes": 1e6, "link_gpus": 2.0},
}


@pytest.mark.parametrize("name", MADE)
def test_the_total_alone_holds_every_cost(name: str) -> None:
    """And holds it where it shows: without that cost's cause the kernel would be faster."""
    loop = Interval(
        repeats=20.0,
        instructions=90.0,
        fp32=30.0,
        sfu=9.0,
        load_bytes=640.0,
        store_bytes=64.0,
        global_waits=1.0,
        alu_waits=9.0,
    )
    plain = Kernel(Interval(instructions=20.0, repeats=1.0), loop, Interval(instructions=70.0, repeats=1.0), ctas=264.0)
    model, gpu = Amali(sustained=Sustained(**COSTS)), load_gpu("a100_sxm_80gb")
    kernel = replace(plain, **MADE[name]).as_arrays()
    total = float(model.nanoseconds(kernel, gpu))
    assert total == pytest.approx(float(model(kernel, gpu).nanoseconds), rel=2e-6)
    assert total > float(model.nanoseconds(plain.as_arrays(), gpu)) + 100
