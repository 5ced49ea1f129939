"""How XLA compiles programs that take longer to compile than to run: nearly all but a sweep's.

Seconds on two cores, for the kernels of Llama-3-8B (JAX 0.10): a neighbourhood's evaluation 8.2 with XLA's own choice,
4.1 as here; its derivatives 16.9 and 6.1. Options that an XLA does not have are left out (JAX 0.12 takes no
choice of loops).
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import equinox as eqx
import jax

Options = dict[str, bool | int | str]
Function = TypeVar("Function", bound=Callable)

OLDER_LOOPS: Options = {"xla_cpu_use_fusion_emitters": False}
"""Loops by XLA's older code generator for CPUs, a third sooner compiled; a sweep's run a tenth faster by the newer.

Of no effect on other devices."""

LEAST: Options = {"xla_backend_optimization_level": 0}
UNFUSED: Options = {"xla_disable_hlo_passes": "fusion"}


def quick_to_compile() -> Options:
    """Return the compiler's options for a program of milliseconds on the default device."""
    return _known(LEAST | OLDER_LOOPS) if jax.default_backend() == "cpu" else {}


def derivatives_quick_to_compile() -> Options:
    """Return the same for derivatives: fused, each of them repeats what they share."""
    return _known(LEAST | UNFUSED) if jax.default_backend() == "cpu" else {}


def quickly_jitted(function: Function) -> Function:
    """Return ``function`` jitted (``equinox.filter_jit``), loops by :data:`OLDER_LOOPS`: for tables and single GPUs.

    Not to be called within another program: options are the outermost one's.
    """

    @cache
    def program() -> Any:
        return eqx.filter_jit(function, compiler_options=_known(OLDER_LOOPS))  # pyright: ignore

    @wraps(function)
    def call(*operands: Any) -> Any:
        return program()(*operands)

    return call  # pyright: ignore[reportReturnType]


def _known(options: Options) -> Options:
    """Those of ``options`` that this XLA has."""
    return {name: value for name, value in options.items() if _has(name, value)}


@cache
def _has(option: str, value: bool | int | str) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={option: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
