"""Attributes that a space turns without those that belong to them: what makes its answer another one's."""

from dse.hardware.data_types import TENSOR_RATE
from dse.hardware.tensor_area import TENSOR_AXES
from dse.space.space import Space
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload


def unlinked_notes(space: Space) -> list[str]:
    """Return a sentence for each attribute that stays while one moves that it follows on every real GPU; each says
    what to link. They are known before a design is evaluated."""
    varied = {axis.name for axis in space.axes} | {name for name, _ in space.links}
    return [
        *_rates_alone(space, varied),
        *_rates_elsewhere(space, varied),
        *_narrow_interface(varied),
        *_slow_l2(space, varied),
    ]


def _rates_alone(space: Space, varied: set[str]) -> list[str]:
    """What one type's rate costs where others' stay: types share multipliers."""
    rates = [name for name in TENSOR_AXES if name.startswith(TENSOR_RATE) and space.base.numbers()[name]]
    swept = [name for name in rates if name in varied]
    still = [name for name in rates if name not in varied]
    if not swept or not still or "tensor_cores_per_sm" in varied:
        return []
    numbers, first = space.base.numbers(), swept[0]
    links = [f'{name} = "{_times(first, numbers[name] / numbers[first])}"' for name in still]
    return [
        f"{', '.join(swept)} {'moves' if len(swept) == 1 else 'move'} and {', '.join(still)} "
        f"{'stays' if len(still) == 1 else 'stay'}: types share multipliers, so that a rate costs next to no area "
        f"below what another type needs. For the area of a faster tensor core give [links] {'; '.join(links)}."
    ]


def _times(name: str, ratio: float) -> str:
    """A multiple of an attribute, as a link states it."""
    return name if ratio == 1 else f"{name} * {ratio:g}"


def _rates_elsewhere(space: Space, varied: set[str]) -> list[str]:
    """Workloads whose products run in a type whose tensor rate stays, while that of another type moves."""
    rates = sorted(name for name in varied if name.startswith(TENSOR_RATE))
    kinds = {workload.name: _type_of_products(workload) for workload in space.workloads}
    return [
        f"{rates[0]} moves, but the products of {name} run in {kind}: link {TENSOR_RATE}{kind} to it, or it stays."
        for name, kind in kinds.items()
        if rates and kind and f"{TENSOR_RATE}{kind}" not in rates
    ]


def _type_of_products(workload: Workload) -> str:
    """The type that most multiply-adds of matrix products run in on tensor cores, "" where there are none."""
    work: dict[str, float] = {}
    for operator in workload.operators:
        kernel = operator.candidates[0].kernel
        for kind in operator.tensor_types() if operator.kind == "gemm" and isinstance(kernel, Kernel) else ():
            work[kind] = work.get(kind, 0.0) + operator.repeats * float(kernel.fma)
    return max(work, key=lambda kind: work[kind], default="")


def _narrow_interface(varied: set[str]) -> list[str]:
    """What DRAM costs whose interface stays."""
    if not varied & {"dram_bandwidth_gbs", "dram_type"} or "dram_bus_bits" in varied:
        return []
    return ["DRAM bandwidth or type moves but dram_bus_bits does not: the die is not charged for another interface."]


def _slow_l2(space: Space, varied: set[str]) -> list[str]:
    """What a clock that moves without the L2's does under a power limit."""
    clocks = sorted(varied & {"boost_clock_mhz", "tensor_clock_mhz"})
    if not clocks or "l2_clock_mhz" in varied or not space.power.limit:
        return []
    return [
        f"{' and '.join(clocks)} {'moves' if len(clocks) == 1 else 'move'} but l2_clock_mhz does not; where the power "
        "limit lowers a clock, the L2's falls by the same share: link l2_clock_mhz, or a higher clock that no board "
        "holds makes the L2 slow."
    ]
