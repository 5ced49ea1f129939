"""Counters: from Nsight metrics and from SASS instructions."""

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.power.counters import (
    COUNTERS,
    AccelWattchActivity,
    booked,
    class_counters,
    executed,
    hw_activity,
    hw_counts,
    nsight_columns,
)
from tests.power.launches import launch

pytestmark = pytest.mark.usefixtures("in_64_bits")


def metrics() -> dict[str, float]:
    names = {
        term.removeprefix("2*")
        for row in read_table("power/accelwattch_energies.csv")
        for term in row["nsight"].split()
    }
    pipes = {f"sm__pipe_{pipe}_cycles_active.sum": 4000.0 for pipe in ("alu", "fma", "fp64", "shared", "tensor")}
    counted = {name: 10.0 * (i + 1) for i, name in enumerate(sorted(names))}
    return (
        counted
        | pipes
        | {
            "sm__cycles_elapsed.sum": 80_000.0,
            "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed": 95.0,
        }
    )


def test_every_counter_is_one_of_a_kind():
    assert len(COUNTERS) == len(set(COUNTERS)) == 39
    assert set(class_counters()) == {"int_add", "int_mul", "fp", "dp", "sfu", "tensor", "tex", "l1", "shared", "l2"}


def test_activity_by_name_and_its_time():
    activity = launch({"INT_ACC": 5.0, "INT_MUL_ACC": 2.0, "INT_DIV_ACC": 1.0}, cycles=2e6, clock_ghz=2.0)
    assert float(activity.count("INT_ACC")) == 5 and float(activity.counts.sum()) == 8
    assert float(activity.accesses("int_mul")) == 3 and float(activity.accesses("fp")) == 0
    assert float(activity.seconds) == pytest.approx(1e-3)
    assert float(activity.active_sms) == 73.75


def test_arrays_of_launches_make_a_batch():
    activity = AccelWattchActivity.of({"FP_ACC": np.arange(3.0)}, cycles=1e3, clock_ghz=1.0, lanes=32, sm_count=80)
    assert activity.counts.shape == (3, len(COUNTERS)) and activity.cycles.shape == (3,)
    assert activity.count("FP_ACC").tolist() == [0, 1, 2]


def test_an_unknown_counter_is_refused():
    with pytest.raises(InputError, match="'FP_ACC'"):
        launch({"FP_ACCC": 1.0})


def test_nsight_metrics():
    given = metrics()
    columns = nsight_columns(given, 80)
    assert float(columns["L1_RM"]) == given["l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum"]
    shared = [given[f"sm__sass_inst_executed_op_shared_{op}.sum"] for op in ("ld", "st")]
    assert float(columns["SHRD_ACC"]) == sum(shared)
    sectors = [given[f"lts__t_sectors_srcunit_tex_op_{op}.sum"] for op in ("read", "write")]
    assert float(columns["NOC"]) == 2 * sum(sectors)
    assert float(columns["Pipeline_Duty"]) == pytest.approx(0.05)
    assert float(columns["Num_Idle_SMs"]) == pytest.approx(4.0)
    assert float(columns["Elapsed_Cycles"]) == 1000.0


def test_a_missing_metric_is_named():
    given = metrics()
    del given["idc__requests.sum"]
    with pytest.raises(InputError, match=r"idc__requests\.sum"):
        nsight_columns(given, 80)


def test_hardware_activity():
    columns = nsight_columns(metrics(), 80)
    activity = hw_activity(columns, {"FP_ACC": 7.0}, lanes=31.0, clock_ghz=1.447, sm_count=80)
    assert float(activity.count("PIPE_A")) == pytest.approx(0.05 * 80 * 1000)
    assert float(activity.count("FP_ACC")) == 7
    assert [float(activity.count(c)) for c in ("IC_H", "REG_RD", "MEM_PRE")] == [0, 0, 0]  # no hardware counter exists
    assert float(activity.idle_sms) == pytest.approx(4.0) and float(activity.cycles) == 1000
    with pytest.raises(InputError, match="L1_RH"):
        hw_counts({}, 80)


@pytest.mark.parametrize(
    ("opcode", "counter", "memory"),
    [("FFMA", "FP_MUL_ACC", False), ("FADD.FTZ", "FP_ACC", False), ("IADD3.X", "INT_ACC", False),
     ("IMAD.WIDE", "INT_MUL_ACC", False), ("IMAD.MOV", "INT_ACC", False), ("IMAD.MOV.U32", "INT_MUL_ACC", False),
     ("MUFU.EX2", "FP_EXP_ACC", False), ("MUFU.RSQ", "FP_SQRT_ACC", False), ("MUFU.LG2", "FP_LG_ACC", False),
     ("HMMA.884.F32.F32.STEP0", "TENSOR_ACC", False), ("DFMA", "DP_MUL_ACC", False), ("TEX.SCR", "TEX_ACC", False),
     ("LDG.E.SYS", "", True), ("BAR.SYNC", "", False)],
)  # fmt: skip
def test_what_an_opcode_is_booked_under(opcode, counter, memory):
    assert booked(opcode) == (counter, memory)


def test_instructions_make_counters_and_lanes():
    done = executed([("FFMA", 10, 320), ("IADD3", 10, 160), ("LDG.E", 5, 160), ("EXIT", 1, 32)])
    assert done.counts == {"TOT_INST": 26, "FP_INT": 21, "FP_MUL_ACC": 320, "INT_ACC": 160}
    assert done.lanes == 24
    assert executed([("EXIT", 1, 32)]).lanes == 0


def test_an_unknown_opcode_is_refused():
    with pytest.raises(InputError, match="HGMMA"):
        executed([("HGMMA.64x64x16.F32", 1, 128)])


def test_opcodes_are_booked_under_counters_that_exist():
    assert {row["counter"] for row in read_table("power/accelwattch_opcodes.csv")} - {""} <= set(COUNTERS)
