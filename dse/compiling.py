"""How XLA compiles programs that run for milliseconds and take seconds to compile: nearly all but a sweep's.

Seconds on two cores, for the kernels of Llama-3-8B (JAX 0.10): a neighbourhood's evaluation 8.2 with XLA's own choice,
6.9 as here; its derivatives 16.9 and 6.5.

Not taken: ``xla_cpu_use_fusion_emitters`` off, a third sooner compiled again. Together with the lowest level of
optimisation it gave derivatives that were wrong by 5 % (JAX 0.10.2; ``tests/test_compiling.py`` holds what is taken to
the derivatives of a careful compilation), and JAX 0.12 has it no more.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax

T = TypeVar("T")

Options = dict[str, bool | int | str]

LEAST: Options = {"xla_backend_optimization_level": 0}


def quick_to_compile() -> Options | None:
    """Return the compiler's options for a program of milliseconds on the default device; None: XLA's own."""
    return LEAST if jax.default_backend() == "cpu" else None


def derivatives_quick_to_compile() -> Options | None:
    """Return the same for derivatives: fused, each of them repeats what they share."""
    return LEAST | {"xla_disable_hlo_passes": "fusion"} if jax.default_backend() == "cpu" else None


def quick_filter_jit(function: Callable[..., T]) -> Callable[..., T]:
    """Return ``equinox.filter_jit`` of a function that runs for milliseconds, with :func:`quick_to_compile`.

    The options are asked for when it is first called: an import starts no device.
    """

    @cache
    def program() -> Callable[..., T]:
        return eqx.filter_jit(function, compiler_options=quick_to_compile())  # pyright: ignore[reportCallIssue]

    @wraps(function)
    def call(*arguments: Any) -> T:
        return program()(*arguments)

    return call


def cache_compilations() -> None:
    """Keep programs that took a second to compile in the user's cache folder: a second command starts at once."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(root / "gpu-dse" / "compiled"))
