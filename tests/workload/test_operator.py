"""Operators with their candidates, and which of them is the fastest."""

from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator

KERNEL = Kernel(Interval(), Interval(), Interval())
PAIR = Operator("qkv", "gemm", (Candidate("a", KERNEL), Candidate("b", KERNEL)), repeats=3.0, phase="decode")


def test_an_operator_that_runs_more_often_keeps_its_candidates() -> None:
    more = PAIR.times(4.0, phase="prefill", name="all_qkv")
    assert (more.repeats, more.phase, more.name) == (12.0, "prefill", "all_qkv")
    assert more.candidates is PAIR.candidates
    assert (PAIR.times(2.0).phase, PAIR.times(2.0).name) == ("decode", "qkv")
    assert PAIR.times(2.0, name="").name == ""


def test_it_is_shown_by_what_it_is() -> None:
    assert repr(PAIR) == "Operator('qkv': gemm, decode, repeats=3, candidates=2)"
