"""What a protocol adds to the kernels that it times."""

from functools import cache
from typing import Any

from dse.base.package_tables import read_table
from dse.hardware.presets import find_preset
from dse.measured.protocol import Protocol
from dse.measured.row_vector import VECTOR
from dse.timing.calibration import POWERED

ANY = "any"
"""Device or operator of an overhead that serves all that have none of their own."""


@cache
def _overheads() -> dict[tuple[str, str, str], tuple[float, float]]:
    return {
        (row["harness"], _preset_name(row["device"]), row["op"]): (float(row["overhead_us"]), float(row["shadow_us"]))
        for table in ("vector_overheads", "operator_overheads")
        for row in read_table(f"calibration/{table}.csv")
    }


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
