"""Kernels of a workload that run on no design of a space, since each design has room for a better one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dse.space.axis import Axis
from dse.space.expression import Expression
from dse.space.target import ends_of
from dse.timing.tensor_core import WARPGROUP_BELOW, WARPGROUP_FROM
from dse.workload.kernel import AnyKernel, Kernel
from dse.workload.operator import Operator
from dse.workload.workload import Workload

MARGIN = 0.75
"""Share of the least shared memory within which a better kernel has to fit: explanations look at designs a step beyond
a space, which keep the kernels that they need."""


@dataclass(frozen=True)
class Room:
    """Shared memory [KiB] that a CTA has at least: ``of_any`` design, and the same ``of_warpgroups`` where all have
    warpgroup instructions (0: not all have)."""

    of_any: float
    of_warpgroups: float

    def replaces(self, kernel: AnyKernel) -> bool:
        """Whether a better kernel runs on each design (:func:`dse.timing.tensor_core.supported`)."""
        if not isinstance(kernel, Kernel):
            return False
        needs = ((kernel.unless_warpgroup_kib, self.of_warpgroups), (kernel.unless_kib, self.of_any))
        return any(0.0 < float(need) <= MARGIN * room for need, room in needs)


def room_of(numbers: Mapping[str, float], axes: Sequence[Axis], links: Sequence[tuple[str, Expression]]) -> Room:
    """Return the room on the designs of a space and on its base GPU (``numbers``)."""
    ends = {
        name: (min(*pair, numbers[name]), max(*pair, numbers[name])) for name, pair in ends_of(numbers, axes, links)
    }
    room = max(0.0, ends["shared_memory_kib"][0] - ends["shared_reserved_kib"][1])
    low, high = ends["compute_capability"]
    newest = ends["warpgroup_mma"][0] > 0 and low >= WARPGROUP_FROM and high < WARPGROUP_BELOW
    return Room(room, room if newest else 0.0)


def without_replaced(workload: Workload, room: Room) -> Workload:
    """Return a workload without the kernels that are replaced on each design."""
    return replace(workload, operators=tuple(_left(operator, room) for operator in workload.operators))


def _left(operator: Operator, room: Room) -> Operator:
    """An operator without them; as it is where one of its forms, which others are chosen with, would have none left."""
    left = replace(operator, candidates=tuple(one for one in operator.candidates if not room.replaces(one.kernel)))
    return left if left.forms == operator.forms else operator
