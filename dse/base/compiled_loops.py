"""Loops compiled by Numba, kept between runs where there is a place to keep them."""

from collections.abc import Callable
from typing import Any

from dse.base.extras import extra

with extra("traces", "a recorded trace"):
    import numba


def njit(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return :func:`numba.njit` as a decorator that keeps what it compiles, where a folder can be written.

    Numba refuses to keep anything where neither the package's folder nor the user's can be: a read-only installation,
    and a user without a home.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(*signature, cache=True, **options)(function)
        except RuntimeError:  # "cannot cache function ...: no locator available"
            return numba.njit(*signature, **options)(function)

    return decorate
