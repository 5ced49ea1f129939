"""How XLA compiles programs that take longer to compile than to run: nearly all but a sweep's.

Seconds on two cores, for the kernels of Llama-3-8B: a neighbourhood's evaluation 8.2 with XLA's own choice, 4.1 as
here; its derivatives 16.9 and 6.1 (JAX 0.10; 0.11 and 0.12 know the same options).
"""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax

OLDER_LOOPS = {"xla_cpu_use_fusion_emitters": False}
"""Loops by XLA's older code generator for CPUs, a third sooner compiled; a sweep's run a tenth faster by the newer.

Of no effect on other devices."""

Options = dict[str, bool | int | str]
Function = TypeVar("Function", bound=Callable)


def quickly_jitted(function: Function) -> Function:
    """Return ``function`` jitted (``equinox.filter_jit``), loops by :data:`OLDER_LOOPS`: for tables and single GPUs.

    Not to be called within another program: options are the outermost one's.
    """
    return eqx.filter_jit(function, compiler_options=OLDER_LOOPS)  # pyright: ignore


def quick_to_compile() -> Options | None:
    """Return the compiler's options for a program of milliseconds on the default device, None where XLA's own do."""
    return {"xla_backend_optimization_level": 0, **OLDER_LOOPS} if jax.default_backend() == "cpu" else None


def derivatives_quick_to_compile() -> Options | None:
    """Return the same for derivatives: fused, each of them repeats what they share."""
    options: Options = {"xla_backend_optimization_level": 0, "xla_disable_hlo_passes": "fusion"}
    return options if jax.default_backend() == "cpu" else None
