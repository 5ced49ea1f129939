"""What every timing model keeps, on designs and kernels drawn over their whole ranges; every candidate is judged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.timing import CAUSES
from dse.workload.kernel import Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from tests.programs import quick_jit
from tests.timing.designs import (
    CALIBRATED,
    DESIGNS,
    DRAWN,
    EVERY,
    MODELS,
    TENSOR,
    causes,
    drawn_gpu,
    drawn_kernels,
    evaluate,
    gpu_batch,
    kernel_arrays,
    seeds,
)

EPS = float(np.finfo(np.float32).eps)
SLACK = 8 * EPS
"""Rounding of a sum of a dozen 32-bit terms."""

DOUBLED = {
    "DRAM bandwidth": ["dram_bandwidth_gbs"],
    "LLC size": ["l2_mib"],
    "SM count": ["sm_count"],
    "every tensor rate": TENSOR,
} | {name: [name] for name in TENSOR}
"""What never makes a kernel slower when it is twice as much, at a fixed clock and with nothing else linked."""

PROMISED = {"mdm": ["DRAM bandwidth"]}
"""What a model keeps of DOUBLED where it is less than all: mdm, as published, lets all active SMs compete in a wave
that only some of them have, and lets a shorter latency hide less."""

many = settings(derandomize=True, max_examples=25, deadline=None, database=None)
models = pytest.mark.parametrize("model", MODELS)
every_model = pytest.mark.parametrize(
    "model", [pytest.param(name, marks=pytest.mark.slow if name == "amali" else ()) for name in EVERY]
)
"""AMALI's equations run as calibrated; the published numbers, some of them neutral, in the slow run."""


def with_doubles(design):
    """The design, then the design with each of DOUBLED."""
    return [design, *(design | {name: 2 * design[name] for name in names} for names in DOUBLED.values())]


@every_model
@many
@given(rng=seeds)
def test_a_batch_keeps_the_contract(model, rng):
    names, kernels = drawn_kernels(rng)
    designs = [drawn_gpu(rng) for _ in range(20)]
    timing = evaluate(model, kernels, [one for design in designs for one in with_doubles(design)])
    stack = causes(timing)
    assert np.isfinite(stack).all() and (stack >= 0).all()
    assert np.isfinite(timing.dram_bytes).all() and (timing.dram_bytes >= 0).all()
    assert (timing.cycles > 0).all() and np.isfinite(timing.nanoseconds).all()
    if model != "mdm":  # as published it lets queues hide behind other stalls, and has no floor
        sheet = np.array([d["dram_bandwidth_gbs"] for design in designs for d in with_doubles(design)])[:, None]
        assert (timing.dram_bytes <= timing.nanoseconds * sheet * (1 + SLACK)).all()
    assert np.isin(timing.feasible, (0.0, 1.0)).all()
    cycles, runs = (x.reshape(len(designs), 1 + len(DOUBLED), -1) for x in (timing.cycles, timing.feasible))
    for number, what in enumerate(DOUBLED, start=1):
        if what not in PROMISED.get(model, DOUBLED):
            continue
        slower = np.argwhere((cycles[:, number] > cycles[:, 0] * (1 + SLACK)) & (runs[:, 0] > 0))
        assert not len(slower), f"twice the {what} slows {names[slower[0][1]]} on {designs[slower[0][0]]}"
        assert (runs[:, number] >= runs[:, 0]).all(), what


@pytest.mark.parametrize(
    "model", [pytest.param(n, marks=() if n in (CALIBRATED, "roofline") else pytest.mark.slow) for n in EVERY]
)
@many
@given(rng=seeds)
def test_32_and_64_bits_agree(model, rng):
    designs, (_, kernels) = [drawn_gpu(rng) for _ in range(DESIGNS)], drawn_kernels(rng)
    narrow, wide = (evaluate(model, kernels, designs, x64=x64) for x64 in (False, True))
    assert wide.cycles.dtype == np.float64
    assert np.max(np.abs(narrow.cycles / wide.cycles - 1)) < 1e-5
    assert (narrow.feasible == wide.feasible).all()
    # Causes change hands where two units tie; elsewhere they agree as the totals do.
    differs = np.abs(causes(narrow) - causes(wide)) > 1e-5 * wide.cycles
    assert differs.any(axis=0).mean() < 1e-3


@models
def test_every_bound_of_the_schema_gives_finite_cycles(model):
    base = preset_sheet("h100_sxm").numbers()
    attrs = preset_sheet("h100_sxm").entries
    bounds = [(name, bound) for name in DRAWN for bound in (attrs[name].attribute.low, attrs[name].attribute.high)]
    tiny = [(name, 1e-38) for name in DRAWN if attrs[name].attribute.low == 0 and attrs[name].attribute.type == "float"]
    designs = [base | {name: value} for name, value in bounds + tiny]
    corners = [base | dict(bounds[side::2]) for side in (0, 1)]
    timing = evaluate(model, some_kernels(), designs + corners)
    assert len(designs) > 100
    assert np.isfinite(causes(timing)).all()
    assert (causes(timing) >= 0).all()


def some_kernels():
    """A few candidates of each kind."""
    found = [
        *gemm_operator("g", Gemm(4096, 4096, 4096)).candidates[:24],
        *gemm_operator("g", Gemm(3, 777, 5001)).candidates[:24],
        *attention_operator("a", Attention(4, 32, 8, 128, 1, 4096)).candidates,
        *attention_operator("a", Attention(1, 32, 8, 128, 2048, 2048)).candidates,
        *vector_operator("e", "add", 1000, 1e4).candidates,
        *vector_operator("r", "rmsnorm", 100, 4096).candidates,
        *vector_operator("q", "elementwise_quant_bf16_fp8", 8192, 8192, implementation="quantise").candidates,
        *vector_operator("s", "softmax", 4096, 32768, "fp32", "pytorch_vector").candidates,
    ]
    return Kernel.stack([c.kernel for c in found])


@models
def test_jit_and_batch_change_nothing(model):
    kernels, design = some_kernels(), preset_sheet("h100_sxm").numbers()
    gpu = Gpu.from_numbers(design)
    mapped = evaluate(model, kernels, [design])
    one = quick_jit(MODELS[model])
    for number in range(0, kernels.ctas.size, 9):
        kernel = jax.tree.map(lambda x, i=number: jnp.asarray(x[i], dtype=float), kernels)
        batched = jax.tree.map(lambda x, i=number: x[0, i], mapped)
        plain = [MODELS[model](kernel, gpu)] if number < 19 else []
        for other in (one(kernel, gpu), *plain):
            total = float(batched.cycles)
            assert float(other.cycles) == pytest.approx(total, rel=SLACK)
            for cause in CAUSES:
                assert float(getattr(other, cause)) == pytest.approx(float(getattr(batched, cause)), abs=SLACK * total)


@models
def test_the_stack_adds_up_to_the_total_exactly(model):
    timing = evaluate(model, some_kernels(), [preset_sheet(n).numbers() for n in ("h100_sxm", "t4")])
    total = np.zeros_like(timing.cycles)
    for value in timing.stack().values():
        total = total + value
    assert list(timing.stack()) == list(CAUSES)
    assert np.array_equal(total, timing.cycles)
    assert np.array_equal(timing.nanoseconds, timing.cycles / timing.clock_ghz)


SMOOTH = ["dram_bandwidth_gbs", "l2_mib", "tensor_fma_bf16", "tensor_clock_mhz", "boost_clock_mhz", "l2_latency_ns",
          "dram_latency_ns", "l1_bytes_per_cycle", "l2_port_bytes_per_cycle", "l2_crossbar_bytes_per_cycle",
          "alu_latency_cycles", "shared_load_latency_cycles", "l1_latency_cycles", "issue_rate",
          "fp32_lanes"]  # fmt: skip
"""Attributes in which the models are smooth but for kinks."""


@models
def test_gradients_are_finite_differences_away_from_kinks(model):
    step = 1e-6
    # 128 B of shared memory and 64 B of L2 port a cycle tie in every epilogue: a kink.
    kernels, base = some_kernels(), preset_sheet("h100_sxm").numbers() | {"l1_bytes_per_cycle": 117.0}
    with jax.enable_x64(True):
        batch, gpu = kernel_arrays(kernels), jax.tree.map(lambda x: x[0], gpu_batch([base]))

        def nanoseconds(scales, kernel):
            scaled = {name: gpu.attribute(name) * scale for name, scale in zip(SMOOTH, scales, strict=True)}
            return MODELS[model](kernel, gpu.with_attributes(scaled)).nanoseconds

        ones = jnp.ones(len(SMOOTH))
        gradient = quick_jit(jax.vmap(jax.grad(nanoseconds), (None, 0)))(ones, batch)
        points = jnp.concatenate([ones + step * jnp.eye(len(SMOOTH)), ones - step * jnp.eye(len(SMOOTH)), ones[None]])
        value = quick_jit(jax.vmap(jax.vmap(nanoseconds, (None, 0)), (0, None)))(points, batch)
        gradient, (above, below) = np.asarray(gradient), np.split(np.asarray(value[:-1]), 2)
        total = np.asarray(value[-1])
    difference = ((above - below) / (2 * step)).T
    kink = np.abs(above + below - 2 * total).T / step > 1e-3 * total[:, None]
    assert np.isfinite(gradient).all()
    assert kink.mean() < 0.05
    assert np.allclose(gradient[~kink], difference[~kink], rtol=1e-3, atol=1e-5 * float(total.min()))
    assert (np.abs(gradient).sum(axis=0) > 0).sum() >= 4  # the gradient is not all zeros


@models
def test_gradients_stay_finite_on_extreme_designs(model):
    schema = preset_sheet("h100_sxm").entries
    design = {name: schema[name].attribute.low for name in DRAWN}
    base = preset_sheet("h100_sxm").numbers()
    gpu = jax.tree.map(lambda x: x[0], gpu_batch([base | design]))
    kernels = kernel_arrays(some_kernels())
    gradient = quick_jit(jax.vmap(jax.grad(lambda g, k: MODELS[model](k, g).cycles), (None, 0)))(gpu, kernels)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@models
def test_what_cannot_run_is_infeasible_and_finite(model):
    base = preset_sheet("h100_sxm").numbers()
    designs = {
        "no tensor cores": base | {"tensor_cores_per_sm": 0.0},
        "no rate for the type": base | {"tensor_fma_bf16": 0.0},
        "no room for a CTA": base | {"shared_memory_kib": 16.0},
        "too few threads": base | {"threads_per_sm": 256.0, "registers_per_sm": 4096.0},
        "an older instruction set": base | {"compute_capability": 7.5, "warpgroup_mma": 0.0},
    }
    big = Kernel.stack([c.kernel for c in gemm_operator("g", Gemm(4096, 4096, 4096)).candidates if "wgmma" in c.label])
    runs = evaluate(model, big, [base])
    assert (runs.feasible == 1).all()
    timing = evaluate(model, big, list(designs.values()))
    assert np.isfinite(timing.cycles).all()
    for what, feasible in zip(designs, timing.feasible, strict=True):
        assert feasible.min() == 0, what
