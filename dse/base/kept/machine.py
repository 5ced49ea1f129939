"""What compiles programs here, and for which processor."""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LIBRARIES = ("equinox", "jax", "jaxlib", "numpy")
"""Those whose classes are kept, and whose code is traced."""

FLAGS = ("XLA", "TF_", "LLVM", "EQX_")
"""How variables of the environment begin that change what is traced or compiled, beside JAX's settings."""

PROCESSOR = ("vendor_id", "model name", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer",
             "CPU architecture", "CPU variant", "CPU part", "CPU revision")  # fmt: skip
"""Lines of /proc/cpuinfo that say which instructions there are, and which of them are quick."""


def is_one_cpu() -> bool:
    """Whether programs run on a CPU, and there is no other device."""
    import jax

    return jax.default_backend() == "cpu" and len(jax.devices()) == 1


@cache
def machine() -> str:
    """Return what compiles here, and for which processor: versions, flags, instructions, threads."""
    import jax

    flags = sorted(item for item in os.environ.items() if item[0].startswith(FLAGS))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    backend = jax.devices()[0].client.platform_version
    return repr((versions(), flags, threads, backend, platform.uname().machine, _processor()))


def _processor() -> list[str]:
    """What the system says of the first processor; where it says nothing, no other machine has the same."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        first = iter(lambda: lines.readline().strip(), "")
        return [line for line in first if line.partition(":")[0].strip() in PROCESSOR]
    return [platform.node(), platform.processor()]


@cache
def versions() -> tuple[Any, ...]:
    """Return what says which Python this is, and which LIBRARIES; none of them is imported."""
    return sys.version, *((name, version(name), _state(name)) for name in LIBRARIES)


def _state(name: str) -> tuple[int, int]:
    """The size and the time of change of a library's first file, which another build of a version changes."""
    spec = find_spec(name)
    state = Path((spec and spec.origin) or "").stat()
    return state.st_size, state.st_mtime_ns
