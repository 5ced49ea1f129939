"""Work accounting in the timing model: what is counted is executed, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from dse import Amali, load_gpu
from dse.timing.work import CLASSES, Work, composed, executed, generated
from dse.workload.implementation import IMPLEMENTATIONS
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """A product on CUDA cores, which its instructions bind."""
    made = gemm_operator("p", Gemm(4096, 4096, 4096, 1, "fp32", "fp32", "fp32", "fp32"), (8.0, 8.0), False)
    found = made.candidates[0].kernel
    assert isinstance(found, Kernel)
    return found


def test_a_class_scales_its_own_counts(kernel):
    found = Work(instructions=1.5, lanes=2.0, sfu=3.0).counted(kernel)
    for interval, before in zip(found.intervals, kernel.intervals, strict=True):
        assert interval.instructions == 1.5 * before.instructions
        assert (interval.fp32, interval.int32) == (2 * before.fp32, 2 * before.int32)
        assert replace(interval, instructions=0, fp32=0, int32=0, sfu=0) == replace(
            before, instructions=0, fp32=0, int32=0, sfu=0
        )
    for name, factor in Work(instructions=1.5, lanes=2.0, sfu=3.0).factors().items():
        assert generated(found, name) == pytest.approx(factor * generated(kernel, name))
    assert executed(None, kernel) is kernel


def test_instructions_of_a_grid_by_hand(kernel):
    each = sum(i.repeats * (i.fp32 + i.int32) for i in kernel.intervals)
    assert generated(kernel, "lanes") == kernel.ctas * kernel.warps * each
    assert set(CLASSES) == set(Work().factors())


def test_more_instructions_take_longer_and_as_many_take_as_long(kernel):
    gpu = load_gpu("a100_sxm_80gb")

    def us(work: Work | None) -> float:
        return float(Amali(work=work)(kernel, gpu).microseconds)

    assert us(Work()) == us(None)
    assert us(Work(instructions=1.5, lanes=1.5)) > 1.3 * us(None)


def test_an_implementation_has_its_own_work(kernel):
    works = [Work(lanes=2.0) if name == "matrix_simt" else None for name in IMPLEMENTATIONS]
    found = composed(works)
    assert found is not None
    place = IMPLEMENTATIONS.index("matrix_simt")
    assert np.flatnonzero(np.asarray(found.lanes) != 1).tolist() == [place]
    gpu = load_gpu("a100_sxm_80gb")
    times = [
        float(Amali(work=work)(replace(kernel, implementation=float(number)), gpu).microseconds)
        for work, number in ((found, place), (Work(lanes=2.0), 0), (found, 0), (None, 0))
    ]
    assert times[0] == pytest.approx(times[1]) and times[2] == times[3] < times[0]
    assert composed([None, None]) is None
