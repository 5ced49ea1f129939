"""Why a workload cannot run on a GPU: memory, instructions, links, the size of CTAs, watts."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from dse.base.errors import InputError
from dse.base.units import GIGA
from dse.hardware.presets import GpuSheet
from dse.power.models import PowerChoice
from dse.power.power_limit import NO_LOWER, SLOWEST
from dse.power.sequence import LaunchSequence
from dse.timing.timing import Timing
from dse.workload.kernel import AnyKernel
from dse.workload.operator import Operator
from dse.workload.workload import Workload


def expect_memory(sheet: GpuSheet, workload: Workload) -> None:
    """Raise InputError where a GPU's memory does not hold the workload."""
    memory, have = workload.memory, float(sheet.numbers()["dram_gb"])
    if memory.total > have * GIGA and not workload.tokens:
        raise InputError(
            f"{workload.name}: its largest product needs {memory.total / GIGA:.1f} GB, {sheet.title} has {have:g} GB; "
            "give smaller products, or a narrower data type"
        )
    if memory.total > have * GIGA:
        gpus = f" on each of {workload.gpus} GPUs" if workload.gpus > 1 else ""
        raise InputError(
            f"{workload.name}: needs {memory.total / GIGA:.1f} GB{gpus} (weights {memory.weights / GIGA:.1f}, KV cache "
            f"{memory.kv / GIGA:.1f}, activations {memory.activations / GIGA:.1f}), {sheet.title} has {have:g} GB; "
            "give more GPUs (tp), a smaller batch or context, or a narrower data type"
            + (f" ({workload.caution})" if workload.caution else "")
        )


def expect_instructions(sheet: GpuSheet, workload: Workload) -> None:
    """Raise InputError where the GPU lacks a type, instructions or links of every kernel of an operator.

    No time is needed to tell, so nothing is compiled.
    """
    lacks = _lacks(sheet)
    for operator in workload.operators:
        if all(any(lacks(candidate.kernel)) for candidate in operator.candidates):
            raise _cannot_run(operator, sheet)


def expect_kernels(sheet: GpuSheet, workload: Workload, timing: Timing) -> None:
    """Raise InputError where an operator has no kernel that runs, as its times say."""
    for operator, runs in zip(workload.operators, timing.feasible[0], strict=True):
        if not runs > 0:
            raise _cannot_run(operator, sheet)


def _cannot_run(operator: Operator, sheet: GpuSheet) -> InputError:
    return InputError(f"{sheet.title} cannot run {operator.name} ({operator.shape}): {_why_not(operator, sheet)}")


class _Lack(NamedTuple):
    """What of a kernel a GPU does not have."""

    types: bool
    instructions: bool
    links: bool


def _lacks(sheet: GpuSheet) -> Callable[[AnyKernel], _Lack]:
    """Return what tells of a kernel what the GPU lacks of it."""
    types, numbers = set(sheet.tensor_types()), sheet.numbers()
    return lambda kernel: _Lack(
        types=not kernel.tensor_types <= types,
        instructions=float(kernel.compute_capability) > numbers["compute_capability"],
        links=_link_gpus(kernel) > numbers["nvlink_gpus"],
    )


def _link_gpus(kernel: AnyKernel) -> float:
    return float(getattr(kernel, "link_gpus", 0.0))  # kernels of a trace send nothing


def _why_not(operator: Operator, sheet: GpuSheet) -> str:
    """Return why a GPU has no kernel for an operator: the data type or instructions it lacks, or the CTA's size."""
    numbers = sheet.numbers()
    kernels = [candidate.kernel for candidate in operator.candidates]
    lacking = [*map(_lacks(sheet), kernels)]
    if any(one.types for one in lacking):
        has = sheet.tensor_types()
        missing = sorted(operator.tensor_types() - set(has))
        return f"its tensor cores have no {' or '.join(missing)}; they have {', '.join(has) or 'no type at all'}"
    if all(one.instructions for one in lacking):
        need = min(float(k.compute_capability) for k in kernels)
        return f"its instructions need compute capability {need:g}, it has {numbers['compute_capability']:g}"
    if all(one.links for one in lacking):
        return (
            f"it sends between {min(map(_link_gpus, kernels)):g} GPUs, and NVLink joins {numbers['nvlink_gpus']:g} of "
            "them; give a smaller tp x dp"
        )
    smallest = min(float(k.shared_kib) for k in kernels)
    return (
        f"no CTA fits an SM: the smallest needs {smallest:g} KiB of shared memory, an SM has "
        f"{numbers['shared_memory_kib']:g} KiB and {numbers['registers_per_sm']:g} registers"
    )


def expect_power(sheet: GpuSheet, workload: Workload, phases: Mapping[str, LaunchSequence], power: PowerChoice) -> None:
    """Raise InputError where the board draws more than its limit even at its lowest clock."""
    for name, phase in phases.items() if power.limit else ():
        if float(phase.clock[0]) <= NO_LOWER:
            raise InputError(
                f"{workload.name}: {sheet.title} draws {float(phase.power.watts[0]):.0f} W in {name} at its lowest "
                f"clock ({SLOWEST:g} of the requested one), more than the board is held to at tdp_w = "
                f"{sheet.numbers()['tdp_w']:g} W; give a larger tdp_w or a smaller GPU"
            )
