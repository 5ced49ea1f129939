"""MDM by hand on a chain of dependent instructions: n_k + max(s_k, V/r), with one scheduler an SM."""

from pathlib import Path

import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.mdm import Mdm
from dse.timing.trace_profile import traced_workload
from tests.workload.traces import kernel_text, write_directory

A100 = preset_sheet("a100_sxm_80gb").numbers() | {"alu_latency_cycles": 5.0}


@pytest.mark.parametrize("warps", [1, 8])
def test_a_chain_by_hand(tmp_path: Path, warps: int) -> None:
    chain = ["0010 ffffffff 1 R1 FFMA 1 R1 0"] * 11
    text = kernel_text([[chain] * warps], threads=32 * warps, binary=80)
    trace = traced_workload(write_directory(tmp_path, text), [A100], representative=0).traces[0]
    timing = Mdm().on_trace(trace, Gpu.from_numbers(A100))
    stall, intervals = 4.0, 11  # ten stalls of 5 - 1 cycles, and the drain of the last instruction
    p, mean = 11 / (11 + stall * intervals), 1.0
    hidden = min(stall * p, 1.0) * (warps - 1) * mean / 4  # V / r: four sub-cores issue together
    per_interval = 1 + max(stall, hidden)
    expected = 10 * per_interval + 1 + stall  # the last interval: one instruction, and its drain
    assert float(timing.cycles) == pytest.approx(expected, rel=1e-6)
    assert float(timing.mio_throttle) == float(timing.math_pipe_throttle) == float(timing.launch) == 0
