"""The ablation on traces: seven small kernels on GCoM's RTX 2060, the original program's answer beside.

Nobody measured these kernels, so there is no error to state: only what each term does to the cycles.
"""

from collections.abc import Callable
from pathlib import Path

import jax
import pandas as pd
from variants import VARIANTS

from dse.hardware.gpu import Gpu
from dse.timing.timing import CAUSES, Timing
from dse.timing.traced.gcom import Stack, gcom_trace
from dse.timing.traced.gcom_config import read_gcom_config
from dse.timing.traced.gcom_gpu import sheet_of_config
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import traced_workload
from dse.traces.trace_files import read_directory
from dse.traces.traced_kernel import TracedKernel
from experiments import data

EXACT = "GCoM's program"
IDLE = "idle"
TRACE_CAUSES = (*CAUSES, IDLE)


def cases() -> list[Path]:
    """Return the trace directories."""
    return sorted((data.GCOM / "traces").iterdir())


def study(names: list[str] | None = None, done: Callable[[int], None] = lambda _: None) -> pd.DataFrame:
    """Return a row a trace and model: cycles, their causes, and the representative warp's instructions."""
    config = read_gcom_config(str(data.GCOM / "configs" / "RTX2060.config"))
    sheet = sheet_of_config(config)
    rows = []
    for path in cases():
        if names and path.name not in names:
            continue
        kernel = traced_workload(path, [sheet.numbers()]).recorded[0]
        exact = gcom_trace(read_directory(path), config)[0].stack
        assert isinstance(kernel, TracedKernel)
        timings = _timings(kernel, sheet.record())
        stacks = {EXACT: _named(exact)} | {
            name: {cause: float(cycles) for cause, cycles in timings[name].stack().items()} for name in VARIANTS
        }
        for model, stack in stacks.items():
            whole = dict.fromkeys(TRACE_CAUSES, 0.0) | stack
            rows.append(
                {
                    "case": path.name,
                    "variant": model,
                    "cycles": sum(whole.values()),
                    "instructions": kernel.segments.instructions,
                    **whole,
                }
            )
        done(1)
    return pd.DataFrame(rows)


def _timings(kernel: TracedKernel, gpu: Gpu) -> dict[str, Timing]:
    return jax.jit(lambda gpu: {name: on_trace(model, kernel, gpu) for name, model in VARIANTS.items()})(gpu)


def _named(stack: Stack) -> dict[str, float]:
    """Return GCoM's stack under AMALI's names; shared-memory stalls lie within ``wait``."""
    return {
        "selected": stack.base,
        "wait": stack.com_data,
        "math_pipe_throttle": stack.com_struct,
        "long_scoreboard": stack.mem_data - stack.noc - stack.dram,
        "lg_throttle": stack.l1_bank,
        "mio_throttle": stack.noc + stack.dram + stack.mshr,
        IDLE: stack.idle,
    }
