"""A workload: where its candidates stand, what each phase runs, and what its memory holds."""

import numpy as np
import pytest

from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.serving_engine import Host
from dse.workload.workload import MemoryFootprint, Phase, Workload


def kernel(ctas: float) -> Kernel:
    """Return a kernel of so many CTAs that do nothing."""
    return Kernel(Interval(), Interval(), Interval(), ctas=ctas)


def operator(name: str, ctas: list[float], **more) -> Operator:
    """Return an operator with a candidate for each number of CTAs."""
    return Operator(name, "gemm", tuple(Candidate(f"{n:g} CTAs", kernel(n)) for n in ctas), **more)


THREE = Workload(
    "three",
    "three operators",
    (
        operator("first", [1.0, 2.0], repeats=4.0, phase="prefill"),
        operator("second", [3.0], repeats=2.0, phase="decode"),
        operator("third", [4.0, 5.0, 6.0], repeats=7.0, phase="decode"),
    ),
    (Phase("prefill"), Phase("decode", 10.0, Host(waits_us=3.0))),
    MemoryFootprint(weights=1e9, kv=2e9, activations=0.5e9),
)


def test_candidates_stand_one_operator_after_the_other() -> None:
    assert THREE.kernels.ctas.tolist() == [1, 2, 3, 4, 5, 6]
    assert THREE.starts.tolist() == [0, 2, 3]
    assert [(part.start, part.stop) for part in THREE.slices] == [(0, 2), (2, 3), (3, 6)]
    assert THREE.candidate_count == 6
    assert THREE.candidate(2, 4).label == "5 CTAs"


def test_a_phase_runs_its_own_operators() -> None:
    assert THREE.phase_repeats("prefill").tolist() == [4, 0, 0]
    assert THREE.phase_repeats("decode").tolist() == [0, 2, 7]


def test_only_a_phase_whose_host_costs_something_waits() -> None:
    assert THREE.host("prefill") is None
    assert THREE.host("decode") == Host(waits_us=3.0)
    assert THREE.waits
    assert not Workload("w", "", THREE.operators, (Phase("prefill"),)).waits


def test_other_kernels_take_the_place_of_the_candidates_and_leave_the_workload_alone() -> None:
    doubled = THREE.with_kernels(Kernel.stack([kernel(2 * c) for c in THREE.kernels.ctas]))
    assert doubled.kernels.ctas.tolist() == [2, 4, 6, 8, 10, 12]
    assert THREE.kernels.ctas.tolist() == [1, 2, 3, 4, 5, 6]
    assert doubled.operators is THREE.operators


def test_what_decides_the_results_is_in_the_arrays() -> None:
    one, other = ([np.asarray(x).tolist() for x in w.arrays()] for w in (THREE, THREE.with_kernels(THREE.kernels)))
    assert one == other
    changed = THREE.with_kernels(Kernel.stack([kernel(c + 1) for c in THREE.kernels.ctas]))
    assert one != [np.asarray(x).tolist() for x in changed.arrays()]


def test_memory_is_the_sum_and_stands_in_what_is_shown() -> None:
    assert THREE.memory.total == pytest.approx(3.5e9)
    assert "prefill, decode: 3 operators, 6 candidate kernels, 3.5 GB" in repr(THREE)
