"""Designs and kernels drawn over their whole ranges, and both models mapped over them once, for the timing tests."""

from functools import cache

import jax
import numpy as np
from hypothesis import strategies as st

from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.hardware.schema import gpu_schema
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.mdm import Mdm
from dse.timing.roofline import Roofline
from dse.workload.kernel import Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.collective import all_reduce_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_counts, vector_operator, vector_ops

MODELS = {"amali": Amali(), "mdm": Mdm(), "roofline": Roofline()}
CALIBRATED = "amali, calibrated"
EVERY = MODELS | {CALIBRATED: load_timing_calibration("shared").model}
BASES = ("h100_sxm", "a100_sxm_80gb", "t4", "rtx_4090", "b200")
TENSOR = [name for name in gpu_schema() if name.startswith("tensor_fma_")]
DRAWN = [name for name, attr in gpu_schema().items() if not attr.choices]
KERNELS = 768
SHAPES = 6
DESIGNS = 12
"""Size of every batch, so that each model compiles once."""


def drawn_gpu(rng):
    """Numbers of a GPU: a preset with four in ten attributes anywhere between their bounds, often at a bound."""
    numbers = load_sheet(rng.choice(BASES)).numbers()
    for name in DRAWN:
        if name != "compute_capability" and rng.random() < 0.4:
            attr = gpu_schema()[name]
            value = float(rng.choice([attr.low, attr.high, *[_between(rng, attr.low, attr.high)] * 8]))
            numbers[name] = float(round(value)) if attr.type in ("int", "bool") else value
    if rng.random() < 0.3:
        numbers |= {"compute_capability": 12.0, "warpgroup_mma": 1.0}  # runs every instruction
    if numbers["dies"] > 1:  # dies without a link are refused; a slow one is all of a time, and its bytes a difference
        numbers["die_link_gbs"] = max(numbers["die_link_gbs"], numbers["dram_bandwidth_gbs"])
    return numbers


def _between(rng, low, high):
    """A number of any magnitude between two bounds."""
    if low > 0:
        return min(high, max(low, low * (high / low) ** rng.random()))
    return high * 10.0 ** rng.uniform(-5, 0) * rng.random()


def _size(rng, most):
    """A whole number of any magnitude."""
    return int((most + 1.0) ** rng.random())


def drawn_vectors(rng):
    """One shape of any size, long rows too, as every implementation does every vector operator that it has."""
    near, out = (10.0 ** rng.uniform(3, 15) for _ in range(2))
    rows, cols, dtype = _size(rng, 10**6), _size(rng, 200_000), str(rng.choice(["bf16", "fp16", "fp8", "fp32"]))
    second = float(rng.choice([0.0, cols // 5]))  # of a rotation
    return [
        vector_operator(
            op,
            op,
            rows,
            cols,
            dtype,
            implementation,
            second=second if op == "rope" else 0.0,
            input_distance=near,
            out_distance=out,
        )
        for implementation, op in vector_counts()
        if op in vector_ops()
    ]


def drawn_operator(rng):
    """An operator of any other kind and shape, odd ones too."""
    near, far, out = (10.0 ** rng.uniform(3, 15) for _ in range(3))
    dtype = str(rng.choice(["bf16", "fp16", "fp8", "int8", "fp4", "tf32", "fp64", "fp32"]))
    kind = rng.choice(["gemm", "gemm", "attention", "all_reduce"])
    if kind == "gemm":
        wide = dtype if dtype in ("bf16", "fp16", "tf32", "fp64", "fp32") else "bf16"
        weights = "int4" if dtype in ("bf16", "fp16") and rng.random() < 0.3 else dtype
        m, n, k = (_size(rng, 30000) for _ in range(3))
        batch = float(rng.choice([1.0, 1.0, 3.0, 10.0 ** rng.uniform(0, 2)]))
        return gemm_operator("g", Gemm(m, n, k, batch, dtype, weights, dtype, wide, near, far, out))
    if kind == "attention":
        kv_heads, queries = _size(rng, 16), 1 if rng.random() < 0.5 else _size(rng, 10000)
        attention = Attention(
            _size(rng, 64),
            kv_heads * _size(rng, 16),
            kv_heads,
            int(rng.choice([64, 80, 128, 256])),
            queries,
            queries + _size(rng, 60000) - 1,
            rng.random() < 0.5,
            "bf16" if dtype == "int8" else dtype,
            str(rng.choice(["bf16", "fp8", "fp4"])),
            near,
            far,
            out,
        )
        return attention_operator("a", attention)
    return all_reduce_operator("c", float(_size(rng, 10**9)), int(rng.choice([2, 4, 8])), "decode")


def drawn_kernels(rng):
    """Every candidate of drawn operators, KERNELS in all, and their names; every vector kernel in six shapes."""
    operators = [operator for _ in range(SHAPES) for operator in drawn_vectors(rng)]
    found = []
    while len(found) < KERNELS:
        operator = operators.pop() if operators else drawn_operator(rng)
        found += [(f"{operator.kind} {operator.shape}: {c.label}", c.kernel) for c in operator.candidates]
    return [name for name, _ in found[:KERNELS]], Kernel.stack([kernel for _, kernel in found[:KERNELS]])


seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
"""Generators for a batch: hypothesis chooses the seed, so that a batch of hundreds costs one draw."""


def gpu_batch(designs):
    """One record of many designs; 32 bits round the numbers, so that both precisions see the same design."""
    return jax.device_put(_gpu_batch(designs))


def kernel_arrays(kernels):
    """The batch in JAX arrays, rounded to 32 bits for the same reason."""
    return jax.device_put(jax.tree.map(_floats, kernels))


def _gpu_batch(designs):
    return Gpu.from_attributes({name: _floats([d[name] for d in designs]) for name in designs[0]})


def _floats(values):
    """The numbers in NumPy: a program takes many arrays of it sooner than each is put on a device."""
    return np.asarray(values, np.float32).astype(jax.dtypes.canonicalize_dtype(float))


@cache
def _mapped(name, x64):
    model = EVERY[name]
    return jax.jit(jax.vmap(jax.vmap(model, (0, None)), (None, 0)))


def evaluate(name, kernels, designs, x64=False):
    """The model's Timing of every kernel on every design, NumPy arrays of shape (designs, kernels).

    Designs go through in batches of DESIGNS and kernels padded to KERNELS: one compilation serves every test.
    """
    count = kernels.ctas.size
    padded = jax.tree.map(lambda x: np.pad(x, (0, KERNELS - count), mode="edge"), kernels)
    filled = designs + [designs[-1]] * (-len(designs) % DESIGNS)
    with jax.enable_x64(x64):
        batch = kernel_arrays(padded)
        groups = [_gpu_batch(filled[i : i + DESIGNS]) for i in range(0, len(filled), DESIGNS)]
        timings = [jax.tree.map(np.asarray, _mapped(name, x64)(batch, group)) for group in groups]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(designs), :count], *timings)


def causes(timing):
    """Cycles by cause, shape (causes, designs, kernels)."""
    return np.stack(list(timing.stack().values()))


def single(operator, label):
    """The kernel of one candidate, in JAX arrays."""
    return next(c.kernel for c in operator.candidates if c.label == label).as_arrays()


def fastest(operator, gpu, model):
    """Label and Timing (scalars) of the candidate that a library would choose on a preset."""
    batch = Kernel.stack([c.kernel for c in operator.candidates])
    timing = evaluate(model, batch, [load_sheet(gpu).numbers()])
    chosen = int(np.argmin(np.where(timing.feasible[0] > 0, timing.nanoseconds[0], np.inf)))
    assert timing.feasible[0, chosen] == 1
    return operator.candidates[chosen].label, jax.tree.map(lambda x: float(x[0, chosen]), timing)


def dominant(timing):
    """The cause that takes most of the cycles."""
    stack = timing.stack()
    return max(stack, key=lambda cause: stack[cause])
