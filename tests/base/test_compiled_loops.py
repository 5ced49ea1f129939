"""Compiled loops, where they can be kept and where not."""

import numba
import pytest

from dse.base.compiled_loops import njit


def test_where_nothing_can_be_kept_a_loop_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles = numba.njit

    def homeless(*signature, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return compiles(*signature, **options)

    monkeypatch.setattr(numba, "njit", homeless)

    @njit("int64(int64)", nogil=True)
    def twice(number):
        return 2 * number

    assert twice(21) == 42
