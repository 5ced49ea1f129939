"""Recorded kernels on designs: their models batch designs themselves, so they are not mapped over pairs."""

from dse.hardware.gpu import Gpu
from dse.power.activity import recorded_activity
from dse.power.board import BoardPower
from dse.power.power import Power
from dse.timing.timing import Timing, TimingModel
from dse.timing.traced.models import on_trace
from dse.timing.traced.operation_counts import operation_counts
from dse.workload.kernel import RecordedKernel


def evaluate_recorded(model: TimingModel, power: BoardPower, kernel: RecordedKernel, gpus: Gpu) -> tuple[Timing, Power]:
    """Return timing and power, if nothing limits it, of a recorded kernel on designs, arrays (designs,)."""
    timing = on_trace(model, kernel, gpus)
    return timing, power.uncapped(recorded_activity(operation_counts(kernel, gpus), timing, gpus), gpus)
