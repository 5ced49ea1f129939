"""For which GPUs the kernels of a space are made: those at the ends of what it varies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

from dse.hardware.schema import gpu_schema
from dse.space.axis import Axis
from dse.space.expression import Expression
from dse.workload.operators.gemm_library import REPRESENTATIVE, WARPGROUP_ALONE
from dse.workload.target import Target

WARPGROUP_ROOM = {
    "cluster_size": (2, inf),
    "threads_per_sm": (2048, inf),
    "ctas_per_sm": (32, inf),
    "registers_per_sm": (65536, inf),
    "shared_memory_kib": (228, inf),
    "shared_reserved_kib": (0, 1),
    "warp_mma_fraction": (0, 0.667),
}
"""Attribute -> range about an H100's: beyond it, or where a space varies it, a warp-level kernel may be the fastest."""


def space_target(numbers: dict[str, float], axes: Sequence[Axis], links: Sequence[tuple[str, Expression]]) -> Target:
    """Return the target of a space: its base's instructions (``numbers``), unless it varies them.

    Where every design has warpgroup instructions and room for their tiles, warp-level tiles are left out.
    """
    ends = dict(ends_of(numbers, axes, links))
    corners = [{name: pair[side] for name, pair in ends.items()} for side in (0, 1)]
    corners[0] |= {"shared_reserved_kib": ends["shared_reserved_kib"][1], "warpgroup_mma": ends["warpgroup_mma"][1]}
    within = all(low <= min(ends[name]) <= max(ends[name]) <= high for name, (low, high) in WARPGROUP_ROOM.items())
    varied = {name for name, (low, high) in ends.items() if low < high}
    alone = numbers["warpgroup_mma"] > 0 and within
    if varied & {"compute_capability", "warpgroup_mma"}:
        return replace(Target.of(corners), capabilities=None)
    return Target.of(corners, WARPGROUP_ALONE if alone else REPRESENTATIVE)


def ends_of(
    numbers: Mapping[str, float], axes: Sequence[Axis], links: Sequence[tuple[str, Expression]]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield each attribute with its least and largest number on a space's designs; one that is linked may have any."""
    schema, varied = gpu_schema(), {axis.name: axis.numbers for axis in axes}
    linked = {name for name, _ in links}
    for name, number in numbers.items():
        if name in varied:
            yield name, (min(varied[name]), max(varied[name]))
        else:
            yield name, (schema[name].low, schema[name].high) if name in linked else (number, number)
