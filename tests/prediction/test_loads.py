"""Loads of a board: shares of the data sheet's time, as watts of its limit."""

import numpy as np

from dse import load_gpu
from dse.prediction.features import DEMANDS
from dse.prediction.loads import BUSY, LOADS, demand_ns, loads
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator

NAMES = list(DEMANDS)


def test_a_board_that_one_part_binds_draws_its_limit_on_that_part():
    busy = np.zeros((2, len(NAMES)))
    busy[0, [NAMES.index("arithmetic"), NAMES.index("roofline")]] = 50.0
    busy[1, [NAMES.index("cold"), NAMES.index("roofline")]] = 30.0
    busy[1, NAMES.index("launch")] = 10.0
    watts = dict(zip(LOADS, loads(busy, 400.0).T, strict=True))
    assert tuple(LOADS) == (*BUSY, "limit")
    assert watts["arithmetic"].tolist() == [400.0, 0.0]
    assert watts["cold"].tolist() == [0.0, 300.0]
    assert watts["launch"].tolist() == [0.0, 100.0]
    assert watts["limit"].tolist() == [400.0, 400.0]


def test_demands_in_nanoseconds_are_the_data_sheets():
    operator = gemm_operator("g", Gemm(4096, 4096, 4096), (9.0, 9.0))
    kernels = Kernel.stack([operator.candidates[0].kernel])
    busy = dict(zip(NAMES, demand_ns(kernels, load_gpu("h100_sxm"))[0], strict=True))
    assert np.isclose(busy["arithmetic"], 1e9 * 2 * 4096**3 / 989.4e12, rtol=0.02)
