"""Data types that workloads of a space compute in, and that its designs, or its base alone, lack."""

from collections.abc import Iterable, Sequence

from dse.base.errors import InputError
from dse.hardware.data_types import TENSOR_RATE
from dse.hardware.presets import GpuSheet
from dse.space.links import OF_BASE
from dse.workload.workload import Workload


def refuse_types(base: GpuSheet, varied: set[str], workloads: Sequence[Workload], where: str) -> None:
    """Refuse a workload in a data type that no design of the space can have; ``varied``: axes and linked attributes."""
    if "tensor_cores_per_sm" in varied:
        return
    has = set(base.tensor_types()) | {name.removeprefix(TENSOR_RATE) for name in varied}
    for workload in workloads:
        for operator in workload.operators:
            missing = sorted(operator.tensor_types() - has)
            if missing:
                raise InputError(
                    f"{where}: [workloads] {workload.name}: {operator.name} computes in {missing[0]}, which "
                    f"{base.title} lacks; its tensor cores have {', '.join(base.tensor_types()) or 'no type at all'} "
                    f"(an axis {TENSOR_RATE}{missing[0]} would give it)"
                )


def refuse_of_base(base: GpuSheet, results: Iterable[str], workloads: Sequence[Workload], where: str) -> None:
    """Refuse ``results`` of the base that it cannot have: of a workload in a data type that only other designs have."""
    for name in results:
        for workload in (w for w in workloads if name.startswith((f"{w.name}.", "total."))):
            types = {kind for operator in workload.operators for kind in operator.tensor_types()}
            if missing := sorted(types - set(base.tensor_types())):
                raise InputError(
                    f"{where}: {OF_BASE}{name} has no value: {workload.name} computes in {missing[0]}, which "
                    f"{base.title} lacks; give a number, or another base"
                )
