"""What a protocol adds to the kernels that it times."""

from collections.abc import Mapping
from functools import cache
from math import exp, log
from typing import Any

from dse.base.package_tables import read_table
from dse.hardware.presets import find_preset
from dse.measured.protocol import Protocol
from dse.measured.row_vector import VECTOR
from dse.timing.calibration import POWERED

ANY = "any"
"""Device or operator of an overhead that serves all that have none of their own."""


@cache
def _stated() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Harness, preset and operator -> overhead and shadow [us] of the tables."""
    return {
        (row["harness"], _preset_name(row["device"]), row["op"]): (float(row["overhead_us"]), float(row["shadow_us"]))
        for table in ("vector_overheads", "operator_overheads")
        for row in read_table(f"calibration/{table}.csv")
    }


@cache
def _overheads() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Those of the tables, and of vector kernels on hosts that are known from their products alone."""
    stated = _stated()
    devices = {(way, device) for way, device, _ in stated if device != ANY}
    derived = {}
    for way, device, op in ((w, d, op) for way, op in _of_hosts() for w, d in devices if w == way):
        if (way, device, op) not in stated and host_slowness(way, device) is not None:
            mine = {d: pair for (w, d, o), pair in stated.items() if (w, o) == (way, op) and d != ANY}
            derived[way, device, op] = on_host(mine, way, device)
    return stated | derived


def _of_hosts() -> set[tuple[str, str]]:
    """Harnesses and vector operators whose overhead is each host's own."""
    return {(way, op) for way, device, op in _stated() if device != ANY and op in VECTOR}


@cache
def host_slowness(harness: str, device: str) -> float | None:
    """Return how slow the host is that launches on a device, against a harness's mean host [1].

    Where an eager call is timed, the shortest reading is the host's path and not the GPU's: a T4, an A100 and an H100
    have the same, and a P100's layer norms, taken on another host, stand where an A100's do. It is read off the
    overheads of products on that host; None where none is known.
    """
    stated, name = _stated(), _preset_name(device)
    ops = [op for way, one, op in stated if (way, one) == (harness, name) and op not in VECTOR]
    ratios = [stated[harness, name, op][0] / stated[harness, ANY, op][0] for op in ops if (harness, ANY, op) in stated]
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios and name != ANY else None


def on_host(known: Mapping[str, tuple[float, float]], harness: str, device: str) -> tuple[float, float]:
    """Return the overhead and shadow [us] of a device's host from those of other devices' (``known``): their mean, each
    as if its host were as slow. A host of which no product is known is a mean one."""
    slower = {one: (host_slowness(harness, device) or 1.0) / (host_slowness(harness, one) or 1.0) for one in known}
    overhead = exp(sum(log(slower[one] * pair[0]) for one, pair in known.items()) / len(known))
    return overhead, sum(slower[one] * pair[1] for one, pair in known.items()) / len(known)


def _preset_name(device: str) -> str:
    """The preset that a device is, whichever of its names is given; ANY where it is none."""
    return find_preset(device) or ANY


def overhead_of(row: Any, protocol: Protocol, gpu: str | None = None) -> tuple[float, float]:
    """Return what a protocol adds to a row's kernel, and how much of a kernel passes unseen meanwhile [us].

    Where events are recorded around an eager call, the host is still busy when a short kernel has ended: only what
    outlasts this shadow adds to the overhead. A protocol's own overhead where none is known for the row's operator, on
    ``gpu`` or on any; first of all that of loops long enough to read the board's power, for rows with such a reading.
    ``gpu``: the preset whose host it is, "" for a GPU that is none; None: the row's device. It is to be the GPU whose
    errors give the interval, since these hold with its host's overhead.
    """
    known = _overheads()
    ways = (protocol.name + POWERED, protocol.name) if getattr(row, "power_w", 0.0) > 0 else (protocol.name,)
    ops = (str(row.op), ANY) if row.op in VECTOR else (str(row.op),)
    devices = (_preset_name(str(row.device) if gpu is None else gpu), ANY)
    found = (known.get((way, device, op)) for way in ways for device in devices for op in ops)
    return next((overhead for overhead in found if overhead), (protocol.overhead_us, 0.0))
