"""How XLA compiles programs that run for milliseconds and take seconds to compile: nearly all but a sweep's.

Seconds of a busy core with AMALI (JAX 0.10): launches on a GPU 9.2 with XLA's own choice, 5.5 as here; the same along
every attribute 34 and 11.

Not taken: ``xla_cpu_use_fusion_emitters`` off, a third sooner compiled again. Together with the lowest level of
optimisation it gave derivatives that were wrong by 5 % (JAX 0.10.2; ``tests/base/test_compilation.py`` holds what is
taken to the derivatives of a careful compilation), and JAX 0.12 has it no more.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np

from dse.base.kept.kept_programs import kept_or_traced

T = TypeVar("T")
B = TypeVar("B")

Options = dict[str, bool | int | str]

LEAST: Options = {"xla_backend_optimization_level": 0}


LEAST_BATCH = 1024
"""Rows that a batch is filled up to: those of most workloads' kernels, and evaluated in a millisecond."""


def quick_to_compile() -> Options | None:
    """Return the compiler's options for a program of milliseconds on the default device; None: XLA's own."""
    return LEAST if jax.default_backend() == "cpu" else None


def derivatives_quick_to_compile() -> Options | None:
    """Return the same for derivatives: fused, each of them repeats what they share."""
    return LEAST | {"xla_disable_hlo_passes": "fusion"} if jax.default_backend() == "cpu" else None


def quick_filter_jit(function: Callable[..., T]) -> Callable[..., T]:
    """Return ``equinox.filter_jit`` of a function that runs for milliseconds, with :func:`quick_to_compile`."""
    return _filter_jit(function, quick_to_compile)


def shared_filter_jit(function: Callable[..., T]) -> Callable[..., T]:
    """Return ``equinox.filter_jit`` of a function that runs often, and is compiled once for all that is asked of it."""
    return _filter_jit(function, lambda: None)


def quick_derivatives_jit(function: Callable[..., T]) -> Callable[..., T]:
    """Return the same for one that takes derivatives, with :func:`derivatives_quick_to_compile`."""
    return _filter_jit(function, derivatives_quick_to_compile)


def _filter_jit(function: Callable[..., T], options: Callable[[], Options | None]) -> Callable[..., T]:
    """The options are asked for when it is first called: an import starts no device."""

    @cache
    def program() -> Callable[..., T]:
        return eqx.filter_jit(function, compiler_options=options())  # pyright: ignore[reportCallIssue]

    return wraps(function)(kept_or_traced(function, options, lambda *arguments: program()(*arguments)))


def filled_up(batch: B, least: int = LEAST_BATCH) -> B:
    """Return a record of arrays (n, ...) with its last row repeated until there are a power of 2, at least ``least``.

    One program then serves batches of most sizes: of other workloads it is neither traced nor compiled again.
    """
    count = len(jax.tree.leaves(batch)[0])
    fill = filled_length(count, least) - count
    return jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], fill, axis=0)]), batch)


def filled_length(count: int, least: int) -> int:
    """Return how many rows :func:`filled_up` makes of so many."""
    return max(1 << (count - 1).bit_length(), least)


def pool_of(count: int) -> ThreadPoolExecutor:
    """Return threads that compute in the floats of the one that asks: JAX holds their width for each thread."""
    wide = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    return ThreadPoolExecutor(count, initializer=lambda: jax.enable_x64(wide).__enter__())


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that compile side by side. Whoever interrupts does not wait for them: a compilation cannot be stopped."""
    pool = pool_of(count)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
