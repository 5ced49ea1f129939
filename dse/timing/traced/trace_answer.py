"""One trace on one GPU with one timing model: what ``dse trace`` answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax

from dse.base.errors import InputError, accepted
from dse.hardware.presets import GpuSheet, load_sheet
from dse.timing.models import TIMING_MODELS
from dse.timing.timing import Timing, TimingModel
from dse.timing.traced.gcom import gcom_trace
from dse.timing.traced.gcom_config import GcomConfig, read_gcom_config
from dse.timing.traced.gcom_gpu import config_of_sheet, sheet_of_config
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import other_generation, traced_workload
from dse.traces.trace_files import TraceDirectory, picked, read_directory
from dse.traces.traced_kernel import TracedKernel

TRACED_ON = {
    60: "p100_pcie_16gb",
    61: "titan_xp",
    70: "v100_sxm2_16gb",
    75: "rtx_2060",
    80: "a100_sxm_80gb",
    86: "rtx_3090",
    89: "rtx_4090",
    90: "h100_sxm",
    100: "b200",
    120: "rtx_pro_6000",
}
"""Binary version -> the GPU that a trace is taken to be made for."""


@dataclass(frozen=True)
class TracedTiming:
    """The timing of one kernel of a trace: cycles by cause (CAUSES), and the clock they are on."""

    kernel: str
    cycles: float
    stack: dict[str, float]
    clock_ghz: float
    warp_instructions: int
    representative: int

    @property
    def microseconds(self) -> float:
        """Time of the launch [us]."""
        return self.cycles / self.clock_ghz / 1e3

    def document(self) -> dict[str, Any]:
        """Return the kernel as ``dse trace --json`` prints it: cycles by cause, and the time [us]."""
        return {
            "kernel": self.kernel,
            "cycles": self.cycles,
            **self.stack,
            "time_us": self.microseconds,
            "clock_ghz": self.clock_ghz,
            "warp_instructions": self.warp_instructions,
            "representative": self.representative,
        }


@dataclass(frozen=True)
class TraceQuestion:
    """A trace directory, a GPU, and a model by name; ``notes`` tell what was chosen, assumed or ignored."""

    directory: TraceDirectory
    gpu: GpuSheet | GcomConfig
    timing: str
    representative: int | None
    notes: tuple[str, ...]
    wanted: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        directory: Path,
        gpu: str | None,
        timing: str | None,
        representative: int | None,
        kernels: Sequence[str] = (),
    ) -> "TraceQuestion":
        """Return the question of a command line, about all kernels or some (numbers or names); raises InputError."""
        traces = picked(read_directory(directory), kernels)
        notes: list[str] = []
        if gpu is None:
            gpu = _made_for(traces)
            notes.append(f"no --gpu is given: {gpu}, by the trace's binary version")
        record = read_gcom_config(gpu) if gpu.endswith(".config") else load_sheet(gpu, "--gpu")
        if isinstance(record, GcomConfig):
            notes += _config_notes(record)
        timing = timing or ("gcom" if isinstance(record, GcomConfig) else "amali")
        if timing != "gcom" and timing not in TIMING_MODELS:
            raise InputError(f"--timing: no model is called {timing!r}; {accepted(timing, ['gcom', *TIMING_MODELS])}")
        if isinstance(record, GpuSheet):
            notes += filter(None, [other_generation(traces, [float(record.numbers()["compute_capability"])])])
        return cls(traces, record, timing, representative, tuple(notes), tuple(kernels))

    @property
    def model(self) -> TimingModel:
        """The model (of any name but gcom)."""
        return TIMING_MODELS[self.timing]()

    @property
    def sheet(self) -> GpuSheet:
        """The GPU as a record."""
        return self.gpu if isinstance(self.gpu, GpuSheet) else sheet_of_config(self.gpu)

    def answer(self) -> list[Any]:
        """Return a GcomResult or a TracedTiming of each kernel; raises InputError where one cannot run."""
        if self.timing == "gcom":
            config = self.gpu if isinstance(self.gpu, GcomConfig) else config_of_sheet(self.gpu)
            return gcom_trace(self.directory, config, self.representative)
        record, answers = self.sheet.record(), []
        for kernel in self.kernels():
            with jax.enable_x64(True):
                timing = jax.jit(partial(on_trace, self.model, kernel))(record)
            answers.append(self.timed(kernel, timing))
        return answers

    def kernels(self) -> list[TracedKernel]:
        """Return the kernels, their caches simulated for the GPU."""
        numbers = [self.sheet.numbers()]
        wanted = {"representative": self.representative, "kernels": self.wanted}
        workload = traced_workload(self.directory.path, numbers, **wanted)
        return [kernel for kernel in workload.recorded if isinstance(kernel, TracedKernel)]

    def timed(self, kernel: TracedKernel, timing: Timing) -> TracedTiming:
        """Return a kernel's timing on the GPU as it is told; raises InputError where it cannot run."""
        need, has = kernel.compute_capability, float(self.sheet.numbers()["compute_capability"])
        if need > has:
            raise InputError(
                f"{kernel.name}: {self.sheet.title} cannot run it: its instructions need compute capability {need:g}, "
                f"it has {has:g}; give a GPU of the trace's generation, or trace the program on this one's"
            )
        if not float(timing.feasible):
            raise InputError(
                f"{kernel.name}: {self.sheet.title} cannot run it: a CTA does not fit an SM, or its tensor cores lack "
                f"{' or '.join(sorted(kernel.tensor_types)) or 'a type'}"
            )
        stack = {cause: float(value) for cause, value in timing.stack().items()}
        clock, facts = float(timing.clock_ghz), (kernel.warp_instructions, kernel.representative)
        return TracedTiming(kernel.name, sum(stack.values()), stack, clock, *facts)


def _made_for(traces: TraceDirectory) -> str:
    binary = traces.kernels[0].header.binary
    if binary not in TRACED_ON:
        known = ", ".join(map(str, TRACED_ON))
        raise InputError(f"{traces.path}: no GPU is known for binary version {binary} ({known} are); give --gpu")
    return TRACED_ON[binary]


def _config_notes(config: GcomConfig) -> list[str]:
    notes = []
    if config.ignored:
        notes.append(f"{config.path}: GCoM ignores {', '.join(config.ignored)}")
    if config.assumed:
        notes.append(f"{config.path}: GCoM takes its own values (an RTX 2060's) for {', '.join(config.assumed)}")
    return notes
