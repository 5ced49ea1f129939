"""The projection by hand: kernels at what binds them, launches between them."""

from collections import Counter

import pytest

from benchmarks.gpu.projection import Started, figures
from benchmarks.gpu.sass import Kernel
from benchmarks.gpu.thunks import Launch

ISSUE = 132 * 128 * 1.98e9


def started(times: int, threads: int, codes: Counter[str], size: float) -> Started:
    kernel = Kernel("kernel", codes, 32, 8, True)
    return Started(Launch("kernel", threads, times, "fusion", True), kernel, size)


def test_a_kernel_that_issue_binds() -> None:
    found = figures([started(2, 1024, Counter(FADD=50, MOV=50), 8.0)], 1000, 3 * 2**20, 10)
    seconds = 2 * 1024 * 100 / ISSUE
    assert found["launches_per_million"] == 2000
    assert found["instructions_per_design"] == pytest.approx(204.8)
    assert found["instructions_per_pair"] == pytest.approx(20.48)
    assert found["bytes_per_design"] == pytest.approx(0.016)
    assert found["bound_designs_per_second"] == pytest.approx(1000 / seconds)
    assert found["projected_designs_per_second"] == pytest.approx(1000 / (seconds / 0.75 + 3e-6))
    assert (found["scratch_mib"], found["spill_bytes"], found["bound_by"]) == (3, 8, "launches")


def test_a_kernel_that_its_reciprocals_bind() -> None:
    found = figures([started(1, 10**9, Counter(MUFU=30, FADD=70), 0.0)], 10**6, 0, 0)
    seconds = 1e9 * 30 / (ISSUE / 8)
    assert found["bound_by"] == "pipe"
    assert found["bound_designs_per_second"] == pytest.approx(1e6 / seconds)
    assert found["projected_designs_per_second"] == pytest.approx(1e6 / (seconds + 1.5e-6))


def test_a_copy_takes_its_bytes() -> None:
    copy = Started(Launch("", 0, 1, "copy.1", True), None, 3e9)
    found = figures([copy], 10**6, 0, 0)
    assert found["bound_by"] == "memory"
    assert found["bound_designs_per_second"] == pytest.approx(1e9)
    assert found["instructions_per_pair"] is None
