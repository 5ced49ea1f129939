"""Why a changed GPU is refused a workload, in the words of ``dse run``."""

from collections.abc import Mapping

from dse.base.units import GIGA
from dse.evaluate.evaluation import WorkloadResult
from dse.hardware.schema import overfull, uneven, unlinked
from dse.power.power_limit import NO_LOWER


def why_refused(gpu: Mapping[str, float], result: WorkloadResult, design: int) -> str:
    """Return why ``dse run`` refuses an evaluated design, ``gpu`` by its attributes; "" where it does not."""
    workload, can_run = result.workload, result.timing.feasible[design]
    lacking = [o.name for o, runs in zip(workload.operators, can_run, strict=True) if not runs > 0]
    if lacking:
        return f"the changed GPU has no kernel for {lacking[0]} that runs"
    if overfull(gpu):
        return "its shared memory would be more than the L1 that holds it"
    if unlinked(gpu):
        return "nothing would join its dies"
    if uneven(gpu):
        return f"its {gpu['dies']:g} dies could not share {gpu['sm_count']:g} SMs equally"
    if workload.memory.total > gpu["dram_gb"] * GIGA:
        return f"the workload needs {workload.memory.total / GIGA:.1f} GB"
    if result.clock[design] <= NO_LOWER:
        return "at its lowest clock the board would draw more than its limit"
    return ""
