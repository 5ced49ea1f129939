"""Kernels on the roofline, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dse.explanation.roofline_points import TOTAL, bandwidth_gbs, roofline_points
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import preset_sheet
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from dse.workload.workload import Phase, Workload

H100 = preset_sheet("h100_sxm")
PRODUCT = gemm_operator("product", Gemm(4096, 4096, 4096), (9.0, 9.0)).times(2.0, phase="decode")
ADD = vector_operator("add", "add", 1000, 1e4).times(1.0, phase="decode")
WORKLOAD = Workload("w", "", (PRODUCT, ADD), (Phase("decode"),))


def points(microseconds: tuple[float, float], dram_bytes: tuple[float, float], waits_us: float = 0.0) -> Any:
    """Return the rows of a product that runs twice and an addition, by kernel."""
    result: Any = SimpleNamespace(
        workload=WORKLOAD,
        chosen=np.array([[WORKLOAD.starts[0], WORKLOAD.starts[1]]]),
        microseconds=np.array([microseconds]),
        timing=SimpleNamespace(dram_bytes=np.array([dram_bytes])),
        waits=lambda phase, design: 1e3 * waits_us,
    )
    return roofline_points(H100, result).set_index("kernel")


def test_the_slope_is_what_a_stream_sustains() -> None:
    numbers = H100.numbers()
    assert bandwidth_gbs(H100) == pytest.approx(numbers["dram_bandwidth_gbs"] * numbers["dram_sustained_fraction"])


def test_a_product_below_the_flat_roof() -> None:
    row = points((200.0, 10.0), (1e8, 4e7)).loc["product"]
    flop = 2.0 * 4096**3
    assert row["unit"] == "tensor bf16"
    assert row["intensity"] == pytest.approx(flop / 1e8)
    assert row["tflops"] == pytest.approx(flop / 200e-6 / 1e12)
    assert row["peak_tflops"] == pytest.approx(peak_tflops(H100.numbers(), "tensor", "bf16"))
    assert row["roof_tflops"] == row["peak_tflops"]
    assert row["of_roof"] == pytest.approx(row["tflops"] / row["peak_tflops"])
    assert row["dram_gbs"] == pytest.approx(1e8 / 200e-6 / 1e9)


def test_a_product_of_many_bytes_is_below_the_slope() -> None:
    row = points((2000.0, 10.0), (4e9, 4e7)).loc["product"]
    assert row["roof_tflops"] == pytest.approx(row["intensity"] * bandwidth_gbs(H100) / 1e3)
    assert row["of_roof"] == pytest.approx(row["of_bandwidth"])


def test_a_kernel_without_multiply_adds_has_a_bandwidth_and_no_place() -> None:
    row = points((200.0, 10.0), (1e8, 4e7)).loc["add"]
    assert row[["unit", "tflops", "intensity"]].isna().all()
    assert row["dram_gbs"] == pytest.approx(4e7 / 10e-6 / 1e9)


def test_a_phase_is_the_sum_of_its_kernels_and_of_its_waits() -> None:
    alone, waiting = (points((200.0, 10.0), (1e8, 4e7), waits).loc[TOTAL] for waits in (0.0, 590.0))
    assert alone["dram_gbs"] == pytest.approx((2e8 + 4e7) / 410e-6 / 1e9)
    assert waiting["dram_gbs"] == pytest.approx((2e8 + 4e7) / 1000e-6 / 1e9)
    assert waiting["intensity"] == alone["intensity"]
