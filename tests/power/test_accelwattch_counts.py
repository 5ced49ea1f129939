"""AccelWattch's counters against counts made by hand: of a recorded kernel and of a generated one."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_sheet
from dse.power.accelwattch_counts import kernel_counts, trace_counts
from dse.power.counters import COUNTERS, AccelWattchActivity
from dse.timing.amali import Amali
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_answer import TraceQuestion
from dse.timing.traced.trace_profile import traced_workload
from dse.traces.traced_kernel import TracedKernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.traces.traces import kernel_text, write_directory

pytestmark = pytest.mark.usefixtures("in_64_bits")

CTAS = 40


def warp(number: int) -> list[str]:
    address = 0x7F0000000000 + 512 * number
    return [
        f"0010 ffffffff 1 R2 LDG.E.SYS 1 R1 4 1 {address:#x} 4",
        f"0020 ffffffff 1 R5 LDG.E.SYS 1 R1 4 1 {address:#x} 4",
        "0030 0000ffff 1 R3 FFMA 2 R2 R5 0",
        "0040 ffffffff 1 R4 MUFU.EX2 1 R3 0",
        "0050 ffffffff 1 R6 HMMA.884.F32.F32 3 R2 R3 R4 0",
        f"0060 ffffffff 0 STG.E.SYS 2 R1 R4 4 1 {address + (1 << 24):#x} 4",
        "0070 ffffffff 0 EXIT 0 0",
    ]


def recorded(folder: Path, lines: list[list[str]]) -> AccelWattchActivity:
    text = kernel_text([[one] for one in lines], threads=32, name="k", binary=70)
    sheet = load_sheet("v100_sxm2_16gb")
    kernel = traced_workload(write_directory(folder / "t", text), [sheet.numbers()]).recorded[0]
    assert isinstance(kernel, TracedKernel)
    return trace_counts(kernel, on_trace(Amali(), kernel, sheet.record()), sheet.record())


def test_a_recorded_kernel_by_hand(tmp_path: Path) -> None:
    found = recorded(tmp_path, [warp(n) for n in range(CTAS)])
    counts = {name: float(found.count(name)) / CTAS for name in COUNTERS}
    assert counts["TOT_INST"] == 7 and counts["FP_INT"] == 4  # all but two loads and a store
    assert counts["FP_MUL_ACC"] == 16 and counts["FP_EXP_ACC"] == 32 and counts["TENSOR_ACC"] == 32
    assert counts["REG_RD"] == 32 * (1 + 1 + 2 + 1 + 3 + 2) and counts["REG_WR"] == 32 * 5
    # Seven instructions of 16 bytes on one line, fetched in pairs, by each of 40 SMs.
    assert counts["IC_M"] == pytest.approx(7 * 16 / 128) and counts["IC_H"] + counts["IC_M"] == 3.5
    assert counts["DC_RM"] == 4 and counts["DC_RH"] == 4  # the second load finds the first one's sectors
    assert counts["DC_WM"] == 4 and counts["DC_WH"] == 0
    assert counts["L2_RM"] == counts["MEM_RD"] == 4 and counts["L2_RH"] == 0
    assert counts["L2_WM"] == counts["MEM_WR"] == 4
    assert counts["NOC_A"] == 2 * (4 + 4)
    assert counts["SHRD_ACC"] == counts["MEM_PRE"] == 0
    assert float(found.lanes) == pytest.approx((16 + 32 + 32) / 3)
    assert float(found.idle_sms) == 80 - CTAS
    duty = (6 * 32 + 16) * CTAS / (float(found.cycles) * 80 * 256)
    assert float(found.count("PIPE_A")) == pytest.approx(duty * float(found.cycles) * 80)


def test_shared_memory_counts_by_cycles_of_its_banks(tmp_path: Path) -> None:
    shared = [f"0010 ffffffff 1 R2 LDS.U.{bits} 1 R1 {bits // 8} 1 0x7f0000000000 {bits // 8}" for bits in (64, 128)]
    found = recorded(tmp_path, [[*shared, "0030 ffffffff 0 EXIT 0 0"]])
    assert float(found.count("SHRD_ACC")) == 2 + 4


def test_an_opcode_that_is_not_booked_is_refused(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "t", kernel_text([[["0010 ffffffff 0 WARPGROUP.ARRIVE 0 0"]]], binary=90))
    question = TraceQuestion.of(folder, "h100_sxm", None, None)
    kernel = question.kernels()[0]
    with pytest.raises(InputError, match="AccelWattch books no SASS opcode 'WARPGROUP'"):
        trace_counts(kernel, on_trace(Amali(), kernel, question.sheet.record()), question.sheet.record())


def test_a_generated_product_by_hand() -> None:
    gpu = load_sheet("v100_sxm2_16gb").record()
    operator = gemm_operator("g", Gemm(1024, 1024, 512, a="fp16", b="fp16", compute="fp16", out="fp16"), (7.0, 7.0))
    kernel = operator.candidates[0].kernel.as_arrays()
    timing = Amali()(kernel, gpu)
    found = kernel_counts(kernel, timing, gpu)
    assert float(found.count("TENSOR_ACC")) == pytest.approx(32 * 1024 * 1024 * 512 / 256)
    assert float(found.count("MEM_RD") + found.count("MEM_WR")) == pytest.approx(float(timing.dram_bytes) / 32)
    through = float(found.count("L2_RH") + found.count("L2_RM") + found.count("L2_WH") + found.count("L2_WM"))
    assert through >= 0.99 * float(kernel.l2_bytes) / 32
    assert float(found.count("TOT_INST")) >= float(found.count("FP_INT")) > 0
    assert all(float(found.count(name)) >= 0 for name in COUNTERS)
