"""What predictors know of a kernel on a GPU, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dse.hardware.presets import load_gpu
from dse.prediction.features import DEMANDS, demands
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator

H100 = load_gpu("h100_sxm")


OPERATORS = {
    0: gemm_operator("g", Gemm(4096, 4096, 4096), (9.0, 9.0)),
    1: attention_operator("a", Attention(1, 32, 8, 128, 2048, 2048), (9.0, 9.0)),
    2: attention_operator("a", Attention(4, 32, 8, 128, 1, 4096), (9.0, 9.0)),
    3: vector_operator("e", "add", 1000, 1e4),
}


def test_demands_by_hand():
    gemm = Gemm(4096, 4096, 4096)
    kernel = next(c.kernel for c in OPERATORS[0].candidates if "split" not in c.label)
    values = dict(zip(DEMANDS, np.asarray(demands(kernel, H100)), strict=True))
    assert values["arithmetic"] == pytest.approx(gemm.fma / (512 * 4 * 132), rel=1e-5)
    assert values["cold"] == pytest.approx(gemm.b_bytes * 1.83 / (3350 * 0.899), rel=1e-3)  # FOREVER: all of it misses
    assert values["launch"] == 1000
    assert values["roofline"] == pytest.approx(
        max(values["arithmetic"], values["cold"] + values["warm"] + values["written"])
    )


@pytest.mark.parametrize(
    "gemm",
    [
        Gemm(64, 512, 8192, batch=3),
        Gemm(64, 512, 8192, compute="fp32", a="fp32", b="fp32", out="fp32"),
        Gemm(2, 512, 8192, batch=3.5, filled=4 / 7),
    ],
)
def test_what_a_split_product_writes_is_its_result(gemm):
    candidates = gemm_operator("g", gemm, (8.0, 8.0)).candidates
    assert any("split" in c.label for c in candidates)
    place = tuple(DEMANDS).index("written")
    dram = (1.98 if gemm.compute == "fp32" else 1.83) / (3350 * 0.899)  # cycles a byte, at the clock of the lanes
    for candidate in candidates:
        far = replace(candidate.kernel, write_distance=1e15, result_distance=0.0)
        assert float(demands(far, H100)[place]) == pytest.approx(gemm.out_bytes * dram, rel=1e-3), candidate.label


def test_a_result_that_no_cache_keeps_is_written_by_every_candidate():
    """Whatever became of the input: a split product's partial sums hide neither."""
    gemm = Gemm(8, 4096, 4096, a_distance=2e6, out_distance=1e10)
    place = tuple(DEMANDS).index("written")
    written = {c.label: float(demands(c.kernel, H100)[place]) for c in gemm_operator("g", gemm, (9.0, 9.0)).candidates}
    assert any("split" in label for label in written) and min(written.values()) > 0
    assert np.ptp(list(written.values())) < 1e-3 * max(written.values())


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_demands_do_not_depend_on_the_candidate(kind):
    few = gemm_operator("g", Gemm(8, 4096, 4096), (9.0, 9.0)) if kind == 0 else OPERATORS[kind]
    assert kind == 1 or any("split" in c.label for c in few.candidates)
    values = [np.asarray(demands(c.kernel, H100)) for c in few.candidates]
    assert np.allclose(values, values[0], rtol=1e-4)
