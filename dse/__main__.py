"""The command ``dse``, and ``python -m dse``."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from dse.base.errors import INTERRUPTED

ENDS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C, a job scheduler at the end of its time, a terminal that is closed: each ends a command in good order."""

SELDOM = 400_000
"""Objects after which Python looks for circles of them: ``dse run`` makes 265,000 that stay, and it would look 390
times, for 0.1 s."""


def main() -> None:
    """Run the command line, with an exit by an interruption that holds from the first import on.

    An exception inside an import comes out as what the library makes of it: of JAX's, an ImportError or a crash.
    """
    for name in ENDS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number and signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):  # not an ignored one
            signal.signal(number, _interrupted)
    gc.set_threshold(SELDOM)
    ended: list[int] = []
    atexit.register(_leave, ended)  # the first to be registered is the last to run
    from dse.cli import main as command_line

    try:
        command_line()
    except SystemExit as stop:
        ended += [stop.code] if isinstance(stop.code, int) else []
        raise


def _leave(ended: list[int]) -> None:
    """Leave with the exit code of a command that ended, without taking executables and modules apart: 0.4 s."""
    if ended:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or never opened
                stream.flush()
        os._exit(ended[0])


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Leave at once while something is imported, else raise KeyboardInterrupt."""
    if _importing(frame):
        os.write(2, b"dse: interrupted\n")
        os._exit(INTERRUPTED)
    signal.default_int_handler(number, frame)


def _importing(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main()
