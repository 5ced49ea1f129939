"""Whether a program's stages are kernels that this project writes (:mod:`dse.evaluate.pallas`), and what they give.

Pallas is an experimental part of JAX. Where a release does not lower the kernels, XLA's program runs instead.
"""

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.evaluate.batching import float_type
from dse.evaluate.candidates import Tabulated
from dse.evaluate.platform import traced_platform
from dse.hardware.gpu import Gpu
from dse.power.power import PowerModel

T = TypeVar("T")

WHOLE = 256
"""Designs of a program are filled up to a multiple of it: of the blocks of all kernels."""

_BY_XLA: ContextVar[bool] = ContextVar("by_xla", default=False)
_TAKEN: ContextVar[list[str] | None] = ContextVar("taken", default=None)  # set while a program is lowered, not after


def own_kernels() -> str | None:
    """Return how the program that is being traced takes the kernels, "pallas" or "interpreted"; None: it does not."""
    how = traced_platform().kernels
    if how == "xla" or _BY_XLA.get() or float_type() is not np.float32:
        return None
    if (taken := _TAKEN.get()) is not None:
        taken.append(how)
    return how


def totals_of_chosen(
    tabulated: Tabulated,
    power: PowerModel,
    settled: Sequence[Callable[[list[Array], Gpu], Any]],
    gpus: Gpu,
    count: int,
    *,
    interpret: bool,
) -> tuple[list[Any], Array]:
    """Return what the fastest candidates come to in each phase, (designs,), and 1 where an operator has one that runs,
    (designs, operators).

    Inside a program, on ``count`` designs. ``settled``: of each phase, what its sums come to
    (:meth:`dse.evaluate.candidates.Candidates.launches`); ``interpret``: by plain operations, without a GPU.
    """
    from dse.evaluate.pallas.choice import which_run  # for GPUs alone: a second of imports

    candidates, common, tables, places = tabulated
    columns = [_filled(x) for x in candidates.columns(gpus, count)]
    group = None
    if common:
        places = jnp.arange(len(tables[0]), dtype=jnp.int32) if places is None else places
        group = _filled(jnp.repeat(places, count // len(places)))
    chosen = candidates.choice(common, interpret=interpret)(columns, group, tables)
    found = candidates.launches(power, settled, interpret=interpret)(columns, chosen)
    return jax.tree.map(lambda x: x[:count], found), which_run(chosen)[:, :count].T


def _filled(column: Array) -> Array:
    return jnp.pad(column, (0, -len(column) % WHOLE), mode="edge")


def with_own_kernels(lower: Callable[[], T]) -> T:
    """Return ``lower()``, which traces and lowers a program; where that fails, of the program without own kernels.

    The first time it says so.
    """
    taken: list[str] = []
    token = _TAKEN.set(taken)
    try:
        return lower()
    except Exception as error:  # whatever an experimental interface raises
        if not taken:
            raise
        return _by_xla(lower, error)
    finally:
        _TAKEN.reset(token)


def _by_xla(lower: Callable[[], T], error: Exception) -> T:
    """Lower a program without own kernels, after it failed with them; raises the same error where they were not it."""
    token = _BY_XLA.set(True)
    try:
        lowered = lower()
    except Exception:  # whatever it is, it fails without them too: it was not the kernels
        raise error from None
    finally:
        _BY_XLA.reset(token)
    _say(type(error).__name__, jax.__version__)
    return lowered


@cache
def _say(error: str, version: str) -> None:
    print(f"dse: JAX {version} does not lower the kernels for this GPU ({error}); XLA's program runs", file=sys.stderr)
