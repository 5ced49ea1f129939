"""MDM by hand on a chain of dependent instructions: n_k + max(s_k, V/r), with one scheduler an SM."""

from pathlib import Path

import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.mdm import Mdm
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import traced_workload
from dse.workload.kernel import Interval, Kernel
from tests.traces.traces import kernel_text, write_directory

A100 = preset_sheet("a100_sxm_80gb").numbers() | {"alu_latency_cycles": 5.0}


@pytest.mark.parametrize("warps", [1, 8])
def test_a_chain_by_hand(tmp_path: Path, warps: int) -> None:
    chain = ["0010 ffffffff 1 R1 FFMA 1 R1 0"] * 11
    text = kernel_text([[chain] * warps], threads=32 * warps, binary=80)
    trace = traced_workload(write_directory(tmp_path, text), [A100], representative=0).recorded[0]
    timing = on_trace(Mdm(), trace, Gpu.from_numbers(A100))
    stall, intervals = 4.0, 11  # ten stalls of 5 - 1 cycles, and the drain of the last instruction
    p, mean = 11 / (11 + stall * intervals), 1.0
    hidden = min(stall * p, 1.0) * (warps - 1) * mean / 4  # V / r: four sub-cores issue together
    per_interval = 1 + max(stall, hidden)
    expected = 10 * per_interval + 1 + stall  # the last interval: one instruction, and its drain
    assert float(timing.cycles) == pytest.approx(expected, rel=1e-6)
    assert float(timing.mio_throttle) == float(timing.math_pipe_throttle) == float(timing.launch) == 0


def queueing(missing: float, load: float, store: float, batches: float) -> tuple[float, float]:
    """MDM's queueing on 54 SMs of four warps that each load and store so many bytes, and by hand.

    docs/model/timing_traced.md 10.

    ``missing``: share of the loads that come from DRAM; ``batches`` of the MSHRs that they fill.
    """
    sms, warps, clock = 54.0, 4.0, A100["boost_clock_mhz"] / 1e3
    gpu = Gpu.from_numbers(A100 | {"l1_mshr_entries": load * warps / batches / A100["sector_bytes"]})
    loop = Interval(repeats=1.0, instructions=10.0, load_bytes=load, store_bytes=store)
    read = {"cold_bytes": missing * load * warps * sms, "cold_distance": 1e15, "warm_bytes": 1.0}
    kernel = Kernel(Interval(), loop, Interval(), ctas=sms, warps=warps, **read)
    t_n, t_d = clock / float(gpu.l2_bytes_per_ns), clock / float(gpu.dram_bytes_per_ns)
    a_batch = 0.5 * sms * warps * (load / batches + store) * (t_n + missing * t_d)  # half of all that compete
    amat = float(gpu.l1_latency_cycles) + clock * float(gpu.l2_latency_ns + missing * gpu.dram_latency_ns)
    return float(Mdm()(kernel.as_arrays(), gpu).mio_throttle), a_batch + (batches - 1) * (amat + a_batch)


@pytest.mark.parametrize("missing", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("store", "batches"), [(0.0, 1.0), (512.0, 1.0), (512.0, 4.0)])
def test_requests_queue_in_batches_of_the_mshrs(missing: float, store: float, batches: float) -> None:
    found, by_hand = queueing(missing, 1024.0, store, batches)
    assert found == pytest.approx(by_hand, rel=1e-5)
