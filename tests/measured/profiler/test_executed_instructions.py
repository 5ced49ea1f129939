"""Counts of instructions: from metrics of launches to notes of a row, and back."""

import numpy as np
import pandas as pd
import pytest

from dse.measured.profiler.executed_instructions import classes, counted, executed, noted

ALU, FMA = "smsp__inst_executed_pipe_alu.sum", "smsp__inst_executed_pipe_fma.sum"
LAUNCH = {"smsp__inst_executed.sum": "1,000", ALU: "300", FMA: "200", "smsp__inst_executed_pipe_xu.sum": "n/a"}


def test_a_class_adds_up_its_metrics_and_its_launches():
    assert executed([(LAUNCH, False)]) == {"instructions": 1000, "lanes": 500}
    assert executed([(LAUNCH, False), (LAUNCH, False)]) == {"instructions": 2000, "lanes": 1000}
    assert executed([(LAUNCH, False), ({ALU: "1"}, False)]) == {}  # not all launches count it
    assert executed([({ALU: "300"}, False)]) == {}  # half of its class
    assert executed([({"sm__inst_executed.sum": "1.000"}, True)]) == {"instructions": 1000}
    assert executed([]) == {}


def test_every_class_counts_what_a_kernel_has():
    from dse.timing.work import CLASSES

    assert set(classes()) == set(CLASSES)


def test_notes_hold_counts_and_tell_them():
    counts = {"instructions": 1.234567891e9, "lanes": 5e6}
    table = pd.DataFrame({"notes": [f"kernel=sgemm{noted(counts)}", "kernel=other", None]})
    found = counted(table)
    assert list(found) == ["instructions", "lanes"]
    assert found["instructions"][0] == pytest.approx(1.234567891e9)
    assert np.isnan(found["lanes"]).tolist() == [False, True, True]
    assert counted(pd.DataFrame({"op": ["gemm"]})) == {} and noted({}) == ""
