"""The command ``dse``, and ``python -m dse``."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line, with an exit by Ctrl-C that holds from the first import on.

    An exception inside an import comes out as what the library makes of it: of JAX's, an ImportError or a crash.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where Ctrl-C is to be ignored
        signal.signal(signal.SIGINT, _interrupted)
    from dse.cli import main as command_line

    command_line()


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Leave at once while something is imported, else raise KeyboardInterrupt."""
    if _importing(frame):
        os.write(2, b"dse: interrupted\n")
        os._exit(128 + number)
    signal.default_int_handler(number, frame)


def _importing(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main()
