"""Ctrl-C is never swallowed: an interrupt that Python drops is raised again.

An exception inside a callback of the garbage collector (JAX has one) or a destructor goes nowhere: Python prints that
it was ignored, and goes on. Were it an interrupt, the command would run to its end as if nobody had asked it to stop.
"""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 0.02
"""Seconds until a dropped interrupt is raised again; where that falls into a callback too, once more."""


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Raise KeyboardInterrupt again where it was dropped, at the latest when the block ends."""
    before, waiting = sys.unraisablehook, list[threading.Timer]()

    def hook(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        timer = threading.Timer(AGAIN, again)
        timer.daemon = True
        waiting.append(timer)
        timer.start()

    def again() -> None:
        if waiting:
            waiting.clear()
            _interrupt()

    sys.unraisablehook = hook
    try:
        yield
        if waiting:
            raise KeyboardInterrupt
    finally:
        waiting.clear()
        sys.unraisablehook = before


def _interrupt() -> None:
    """Interrupt the main thread, also where it waits for the system."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
