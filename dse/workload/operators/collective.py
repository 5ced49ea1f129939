"""Messages between GPUs, all-reduces and exchanges of tokens, by latency and bandwidth of NVLink or PCIe."""

from dataclasses import replace
from functools import cache
from math import ceil
from typing import NamedTuple

from dse.base.constants import constant
from dse.base.package_tables import read_table
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator

CTA_BYTES = int(constant("all_reduce_cta_bytes"))
"""Bytes a CTA of 256 threads moves at a time, one 128-bit load a thread (assumed)."""


IN_SWITCH_GPUS, IN_SWITCH_CAPABILITY = int(constant("in_switch_gpus")), constant("in_switch_capability")
"""GPUs from which on NCCL adds up in the switch, and the compute capability that this needs."""

PCIE_GPUS = int(constant("pcie_most_gpus"))
"""Most GPUs of a server whose messages go over PCIe (assumed)."""

OVER_NVLINK, OVER_PCIE = 1.0, -1.0
"""``link_tier`` of a kernel that sends over one of them alone."""


class Algorithm(NamedTuple):
    """What an algorithm of a library's all-reduce costs over NVLink: ``messages`` [latency of a link] with two GPUs,
    ``further`` [latency] for each more, and the ``share`` [1] of a link's bandwidth that its bytes get."""

    messages: float
    further: float
    share: float


@cache
def algorithms() -> dict[str, Algorithm]:
    """Return the algorithms by name, with their fitted costs."""
    values: dict[str, dict[str, float]] = {}
    for row in read_table("calibration/collectives.csv"):
        values.setdefault(row["algorithm"], {})[row["attribute"]] = float(row["value"])
    return {name: Algorithm(**costs) for name, costs in values.items()}


def all_reduce_operator(name: str, size: float, gpus: int, phase: str, repeats: float = 1.0) -> Operator:
    """Return the all-reduce of ``size`` [B] over ``gpus`` GPUs.

    Over NVLink with fitted costs: one-shot (every GPU sends everything to every other, p-1 sizes), two-shot
    (reduce-scatter, then all-gather: 2 (p-1)/p sizes), NCCL's ring (as many), and from IN_SWITCH_GPUS on sums in
    the switch (1 + 1/p sizes). Over PCIe, with nothing fitted: two GPUs at once, more around a ring, 2 (p-1) messages,
    up to PCIE_GPUS of one server.
    """
    scattered = scattered_bytes(size, gpus)
    candidates = [
        Candidate("one-shot", _over_nvlink("one_shot", size, (gpus - 1.0) * size, gpus)),
        Candidate("two-shot", _over_nvlink("two_shot", size, scattered, gpus)),
        Candidate("ring", _over_nvlink("ring", size, scattered, gpus)),
    ]
    if gpus >= IN_SWITCH_GPUS:
        summed = _over_nvlink("in_switch", size, (1.0 + 1.0 / gpus) * size, gpus)
        candidates.append(Candidate("in-switch", replace(summed, compute_capability=IN_SWITCH_CAPABILITY)))
    if gpus <= PCIE_GPUS:
        messages = 1.0 if gpus == 2 else 2.0 * (gpus - 1.0)
        around = replace(_kernel(size, scattered, messages, gpus), link_tier=OVER_PCIE)
        candidates.append(Candidate("PCIe", around))
    return Operator(name, "all_reduce", tuple(candidates), repeats, phase, f"{size / 1e6:g} MB over {gpus} GPUs")


def scattered_bytes(size: float, gpus: float) -> float:
    """Return what a GPU sends in an all-reduce of ``size`` [B] as reduce-scatter and all-gather [B], the least."""
    return 2.0 * (gpus - 1.0) / gpus * size


def _over_nvlink(algorithm: str, size: float, sent: float, gpus: int) -> Kernel:
    """The kernel of an algorithm that sends so many bytes; ``link_bytes`` are as many as take its time at the link's
    full bandwidth."""
    costs = algorithms()[algorithm]
    messages = costs.messages + costs.further * (gpus - 2.0)
    return replace(_kernel(size, sent / costs.share, messages, gpus), link_tier=OVER_NVLINK)


def all_to_all_operator(name: str, sent: float, gpus: int, phase: str, repeats: float = 1.0) -> Operator:
    """Return an exchange in which each of ``gpus`` GPUs sends ``sent`` [B] to the others: one message time and the
    bytes over the bandwidth of a link. Nothing of it is fitted to a measured exchange."""
    kernel = _kernel(sent, sent, 1.0, gpus)
    return Operator(
        name, "all_to_all", (Candidate("direct", kernel),), repeats, phase, f"{sent / 1e6:g} MB of {gpus} GPUs"
    )


def _kernel(size: float, link_bytes: float, messages: float, gpus: int) -> Kernel:
    ctas = max(1, min(1024, ceil(size / CTA_BYTES)))
    body = Interval(
        repeats=ceil(size / (ctas * CTA_BYTES)),
        instructions=64.0,
        fp32=16.0,
        int32=16.0,
        shared_bytes=32 * 32.0,
        load_bytes=32 * 16.0,
        store_bytes=32 * 16.0,
        global_waits=1.0,
    )
    return Kernel(
        start=Interval(),
        loop=body,
        end=Interval(),
        ctas=ctas,
        warps=8.0,
        registers=48.0,
        warm_bytes=size,
        warm_distance=size,
        write_bytes=size,
        write_distance=size,
        l2_bytes=2.0 * size,
        link_bytes=link_bytes,
        link_messages=messages,
        link_gpus=float(gpus),
    )
