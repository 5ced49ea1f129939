"""Attributes that a space turns without those that belong to them: what makes its answer another one's."""

from typing import NamedTuple

from dse.hardware.data_types import TENSOR_RATE
from dse.hardware.tensor_area import TENSOR_AXES
from dse.space.axis import Axis
from dse.space.space import Space
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

CROSSBAR = "l2_crossbar_bytes_per_cycle"


class Unlinked(NamedTuple):
    """Attributes that stay while one moves that they follow on every real GPU, and the sentence on what to link."""

    names: tuple[str, ...]
    sentence: str


def unlinked_notes(space: Space) -> list[str]:
    """Return the sentences on what should be linked, known before a design is evaluated."""
    return [one.sentence for one in _unlinked(space)]


def unlinked_headline(space: Space) -> list[str]:
    """Return the same as one short sentence, or none."""
    names = list(dict.fromkeys(name for one in _unlinked(space) for name in one.names))
    stay = "stays while what it follows moves" if len(names) == 1 else "stay while what they follow moves"
    return [f"Careful: {', '.join(names)} {stay}; the notes say what that does and what to link."] if names else []


def _unlinked(space: Space) -> list[Unlinked]:
    varied = {axis.name for axis in space.axes if _moves(space, axis)} | {name for name, _ in space.links}
    return [
        *_rates_alone(space, varied),
        *_rates_elsewhere(space, varied),
        *_narrow_interface(varied),
        *_slow_l2(space, varied),
        *_narrow_crossbar(space, varied),
    ]


def _moves(space: Space, axis: Axis) -> bool:
    """Whether any design has another value than the base GPU."""
    return len(axis) > 1 or list(axis.numbers) != [space.base.numbers().get(axis.name)]


def _rates_alone(space: Space, varied: set[str]) -> list[Unlinked]:
    """What one type's rate costs where others' stay: types share multipliers."""
    rates = [name for name in TENSOR_AXES if name.startswith(TENSOR_RATE) and space.base.numbers()[name]]
    swept = [name for name in rates if name in varied]
    still = [name for name in rates if name not in varied]
    if not swept or not still or "tensor_cores_per_sm" in varied:
        return []
    numbers, first = space.base.numbers(), swept[0]
    links = [f'{name} = "{_times(first, numbers[name] / numbers[first])}"' for name in still]
    sentence = (
        f"{', '.join(swept)} {'moves' if len(swept) == 1 else 'move'} and {', '.join(still)} "
        f"{'stays' if len(still) == 1 else 'stay'}: types share multipliers, so that a rate costs next to no area "
        f"below what another type needs. For the area of a faster tensor core give [links] {'; '.join(links)}."
    )
    return [Unlinked(tuple(still), sentence)]


def _times(name: str, ratio: float) -> str:
    """A multiple of an attribute, as a link states it."""
    return name if ratio == 1 else f"{name} * {ratio:g}"


def _rates_elsewhere(space: Space, varied: set[str]) -> list[Unlinked]:
    """Workloads whose products run in a type whose tensor rate stays, while that of another type moves."""
    rates = sorted(name for name in varied if name.startswith(TENSOR_RATE))
    kinds = {workload.name: _type_of_products(workload) for workload in space.workloads}
    return [
        Unlinked(
            (TENSOR_RATE + kind,),
            f"{rates[0]} moves, but the products of {name} run in {kind}: link {TENSOR_RATE}{kind} to it, or it stays.",
        )
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


def _narrow_interface(varied: set[str]) -> list[Unlinked]:
    """What DRAM costs whose interface stays."""
    if not varied & {"dram_bandwidth_gbs", "dram_type"} or "dram_bus_bits" in varied:
        return []
    sentence = "DRAM bandwidth or type moves but dram_bus_bits does not: the die is not charged for another interface."
    return [Unlinked(("dram_bus_bits",), sentence)]


def _slow_l2(space: Space, varied: set[str]) -> list[Unlinked]:
    """What a clock that moves without the L2's does under a power limit."""
    clocks = sorted(varied & {"boost_clock_mhz", "tensor_clock_mhz"})
    if not clocks or "l2_clock_mhz" in varied or not space.power.limit:
        return []
    sentence = (
        f"{' and '.join(clocks)} {'moves' if len(clocks) == 1 else 'move'} but l2_clock_mhz does not; where the power "
        "limit lowers a clock, the L2's falls by the same share: link l2_clock_mhz, or a higher clock that no board "
        "holds makes the L2 slow."
    )
    return [Unlinked(("l2_clock_mhz",), sentence)]


def _narrow_crossbar(space: Space, varied: set[str]) -> list[Unlinked]:
    """What the network on chip lets through where slices or ports of the L2 move, and it does not."""
    paths = sorted(varied & {"l2_slice_bytes_per_cycle", "l2_port_bytes_per_cycle"})
    if not paths or CROSSBAR in varied:
        return []
    sentence = (
        f"{' and '.join(paths)} {'moves' if len(paths) == 1 else 'move'} but {CROSSBAR} does not: where all SMs read, "
        f"each gets {space.base.numbers()[CROSSBAR]:g} B a cycle whatever slices and ports give. Link it to them."
    )
    return [Unlinked((CROSSBAR,), sentence)]
