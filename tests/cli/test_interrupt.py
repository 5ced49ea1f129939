"""An interrupt that Python drops, in a destructor, ends the block all the same."""

import sys
import time
from collections.abc import Callable

import pytest

from dse.cli.interrupt import interrupts_kept


class Raises:
    """Raises where nobody can catch it: when it is destroyed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def wait() -> None:
    """Wait longer than an interrupt takes to be raised again."""
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("then", [wait, lambda: None], ids=["while it runs", "when it ends"])
def test_a_dropped_interrupt_is_raised_again(then: Callable[[], None]) -> None:
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupts_kept():
        Raises(KeyboardInterrupt())
        then()
    assert time.monotonic() - begin < 5.0


def test_other_dropped_errors_go_where_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: seen.append(dropped.exc_type))
    with interrupts_kept():
        Raises(ValueError("in a destructor"))
    assert seen == [ValueError]


def test_the_hook_is_put_back_and_errors_pass() -> None:
    before = sys.unraisablehook
    with pytest.raises(ZeroDivisionError), interrupts_kept():
        assert sys.unraisablehook is not before
        raise ZeroDivisionError
    assert sys.unraisablehook is before
