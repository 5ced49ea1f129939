"""Tensor cores: AMALI's initiation intervals, rates of instruction classes, and what a GPU lacks."""

import jax.numpy as jnp
import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_gpu, preset_sheet
from dse.timing.tensor_core import SLOWEST, busy_cycles, fixed_interval_rate, supported, tensor_rate
from dse.timing.timing import kernel_clock
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.matrix_instructions import MMA_1688, MMA_16816, WGMMA, instruction_fma
from tests.timing.designs import single


def gemm(label, dtype="bf16"):
    """One candidate of a square product."""
    return single(gemm_operator("g", Gemm(512, 512, 512, 1, dtype, dtype, dtype)), label)


@pytest.mark.parametrize(
    ("gpu", "instruction", "dtype", "cycles"),
    [
        ("a100_sxm_80gb", MMA_16816, "bf16", 8),
        ("a100_sxm_80gb", MMA_1688, "fp16", 4),
        ("h100_sxm", MMA_16816, "bf16", 4),  # at the full rate, as AMALI counts it
        ("h100_sxm", MMA_1688, "fp16", 2),
        ("a100_sxm_80gb", MMA_16816, "int8", 8),  # IMMA.16832
        ("t4", MMA_1688, "fp16", 8),
    ],
)
def test_initiation_interval_is_the_opcodes_fma_over_the_rate(gpu, instruction, dtype, cycles):
    numbers = preset_sheet(gpu).numbers() | {"warp_mma_fraction": 1.0}
    kernel = gemm(f"{instruction.name} 64x64", dtype)
    rate = tensor_rate(kernel, Gpu.from_numbers(numbers))
    assert float(busy_cycles(kernel.tensor_instruction_fma, rate)) == cycles


def test_without_modifiers_the_unit_is_gcoms_whatever_the_gpu():
    for label in ("hmma_1688 64x64", "hmma_16816 64x64"):
        kernel = gemm(label, "fp16")
        assert float(busy_cycles(kernel.tensor_instruction_fma, fixed_interval_rate(kernel))) == 16


def test_a_warpgroup_instruction_keeps_the_core_busy_for_its_columns():
    fma = instruction_fma(WGMMA, "bf16", 256)
    assert fma == 64 * 256 * 16 / 4
    assert float(busy_cycles(jnp.asarray(fma), jnp.asarray(512.0))) == 128


def test_warp_level_instructions_reach_a_share_of_hoppers_rate():
    h100 = load_gpu("h100_sxm")
    assert float(tensor_rate(gemm("hmma_16816 64x64"), h100)) == pytest.approx(512 * 0.667)
    assert float(tensor_rate(gemm("wgmma 64x64"), h100)) == 512


def test_the_rate_belongs_to_the_data_type_and_to_a_subcore():
    h100, t4 = load_gpu("h100_sxm"), load_gpu("t4")
    assert float(tensor_rate(gemm("wgmma 64x64", "fp8"), h100)) == 1024
    assert float(tensor_rate(gemm("hmma_1688 64x64", "fp16"), t4)) == 2 * 64  # two tensor cores a sub-core


@pytest.mark.parametrize(
    ("label", "dtype", "gpu", "runs"),
    [
        ("wgmma 64x64", "bf16", "h100_sxm", 1),
        ("wgmma 64x64", "bf16", "a100_sxm_80gb", 0),
        ("hmma_16816 64x64", "bf16", "t4", 0),
        ("hmma_16816 128x128", "fp8", "a100_sxm_80gb", 0),
        ("hmma_16816 128x128", "fp8", "rtx_4090", 1),
        ("wgmma 64x64", "fp4", "h100_sxm", 0),
        ("tcgen05 128x128", "fp4", "b200", 1),
        ("tcgen05 64x64", "bf16", "h100_sxm", 0),
        ("wgmma 64x64", "bf16", "b200", 0),
        ("hmma_1688 64x64", "fp16", "p100_pcie_16gb", 0),
        ("ffma 64x64", "fp32", "p100_pcie_16gb", 1),
    ],
)
def test_a_gpu_runs_what_it_has(label, dtype, gpu, runs):
    assert float(supported(gemm(label, dtype), load_gpu(gpu))) == runs


def test_a_rate_too_small_to_count_is_none():
    numbers = preset_sheet("a100_sxm_80gb").numbers() | {"tensor_fma_bf16": SLOWEST / 2}
    gpu, kernel = Gpu.from_numbers(numbers), gemm("hmma_16816 64x64")
    assert float(tensor_rate(kernel, gpu)) == 0
    assert float(supported(kernel, gpu)) == 0


def test_fp64_has_no_warpgroup_instruction_and_runs_at_boost():
    h100 = load_gpu("h100_sxm")
    kernel = gemm("hmma_16816 64x64", "fp64")
    assert float(tensor_rate(kernel, h100)) == 32
    assert float(kernel_clock(kernel, h100)) == pytest.approx(1.98)
