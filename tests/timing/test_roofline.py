"""The roofline against arithmetic on the back of an envelope."""

import pytest

from dse.workload.operators.collective import algorithms, all_reduce_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from tests.timing.designs import dominant, fastest

LAUNCH = 2200 / 1.98e3  # [us]


def test_a_big_product_runs_at_the_peak():
    _, timing = fastest(gemm_operator("g", Gemm(8192, 8192, 8192)), "h100_sxm", "roofline")
    peak = 132 * 4 * 512 * 2 * 1.83e3  # [FLOP/us]
    assert timing.microseconds == pytest.approx(2 * 8192**3 / peak + 2200 / 1.83e3, rel=1e-3)
    assert dominant(timing) == "math_pipe_throttle"


def test_a_stream_runs_at_the_bandwidth():
    _, timing = fastest(vector_operator("e", "relu", 1e6, 1e3), "h100_sxm", "roofline")
    assert timing.dram_bytes == pytest.approx(4e9, rel=1e-3)
    assert timing.microseconds == pytest.approx(4e9 / (3350e3 * 0.899) + LAUNCH, rel=1e-3)
    assert dominant(timing) == "dram_bandwidth"


def test_an_all_reduce_takes_its_link_time():
    _, timing = fastest(all_reduce_operator("r", 1e8, 8, "decode"), "h100_sxm", "roofline")
    costs = algorithms()["in_switch"]
    link = (1 + 1 / 8) * 1e8 / (costs.share * 450e3) + costs.messages * 2.0  # [us], latencies of 2 us
    assert timing.interconnect / 1.98e3 == pytest.approx(link, rel=1e-3)
    assert dominant(timing) == "interconnect"
