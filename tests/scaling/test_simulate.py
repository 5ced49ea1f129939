"""A timing model as the simulator of scale models."""

import pytest

from dse.hardware.presets import load_gpu
from dse.scaling.scale import scale
from dse.scaling.shrink import shrink
from dse.scaling.simulate import WAITS_FOR_MEMORY, fastest_kernel, memory_stall_fraction, simulated
from dse.scaling.table import Sheet
from dse.timing.amali import Amali
from dse.timing.timing import CAUSES
from dse.workload.operators.gemm import Gemm, gemm_operator

H100 = load_gpu("h100_sxm")


@pytest.mark.slow
def test_the_interval_model_as_simulator():
    """A large GEMM under weak scaling: twice the SMs do twice the work, so every method finds the target."""
    model = Amali()
    gemms = {size: gemm_operator("g", Gemm(128 * size, 4096, 4096), (9.0, 9.0)) for size in (33, 66, 132)}
    kernels = {size: fastest_kernel(gemms[size], shrink(H100, size) if size < 132 else H100, model) for size in gemms}
    (row,) = simulated({"gemm": kernels[132]}, H100, (33, 66, 132), model)
    assert row.sizes == (33, 66, 132)
    assert all(ipc and ipc > 0 for ipc in row.ipc) and all(m and m > 0 for m in row.mpki)
    assert 0 <= (row.f_mem[0] or 0) < 1
    answer = scale([Sheet("h100", "SM", (row,))])
    error = answer.sheets[0].errors()["recursion"][132.0]["mean"]
    assert error < 15


def test_stall_fraction_is_the_memory_share_of_the_stack():
    model, kernel = Amali(), fastest_kernel(gemm_operator("g", Gemm(8, 8192, 8192), (9.0, 9.0)), H100, Amali())
    timing = model(kernel, H100)
    stack = {cause: float(value) for cause, value in timing.stack().items()}
    share = float(memory_stall_fraction(timing))
    assert share == pytest.approx(sum(stack[c] for c in WAITS_FOR_MEMORY) / sum(stack.values()), rel=1e-5)
    assert share > 0.3
    assert set(WAITS_FOR_MEMORY) < set(CAUSES)
