"""The processor, the device and the versions of libraries, on which the last bits of a result depend."""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import jax

import dse

DECIDING = ("jax", "jaxlib", "numpy")
"""Libraries whose version may change the last bits of a number."""


def machine() -> dict[str, str]:
    """Return the processor, the device and the versions of this process, by name."""
    device = jax.local_devices()[0]
    return {
        "dse": dse.__version__,
        **{name: version(name) for name in DECIDING},
        "processor": processor(),
        "device": "" if device.platform == "cpu" else device.device_kind,
    }


def unlike(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return how two machines differ, as "jax 0.10.2 instead of 0.10.1": ``theirs`` first."""
    return [
        f"{name} {theirs.get(name) or 'none'} instead of {value or 'none'}"
        for name, value in ours.items()
        if theirs.get(name) != value
    ]


def processor() -> str:
    """Return the processor's market name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
