"""Messages between GPUs, all-reduces and exchanges of tokens, by latency and bandwidth of NVLink or PCIe."""

from dataclasses import replace
from math import ceil

from dse.base.constants import constant
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator

CTA_BYTES = int(constant("all_reduce_cta_bytes"))
"""Bytes a CTA of 256 threads moves at a time, one 128-bit load a thread (assumed)."""


def all_reduce_operator(name: str, size: float, gpus: int, phase: str, repeats: float = 1.0) -> Operator:
    """Return the all-reduce of ``size`` [B] over ``gpus`` GPUs.

    Candidates where all reach each other directly (an NVSwitch, a bridge, two on PCIe): one-shot (every GPU sends
    everything to every other: one message time, p-1 sizes) and two-shot (reduce-scatter, then all-gather: two message
    times, 2 (p-1)/p sizes). Of more than two, anywhere: a ring (two-shot by neighbours: 2 (p-1) message times).
    """
    scattered = 2.0 * (gpus - 1.0) / gpus * size
    candidates = (
        Candidate("one-shot", _kernel(size, (gpus - 1.0) * size, 1.0, gpus)),
        Candidate("two-shot", _kernel(size, scattered, 2.0, gpus)),
    )
    if gpus > 2:
        around = replace(_kernel(size, scattered, 2.0 * (gpus - 1.0), gpus), link_ring=1.0)
        candidates += (Candidate("ring", around),)
    return Operator(name, "all_reduce", candidates, repeats, phase, f"{size / 1e6:g} MB over {gpus} GPUs")


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
