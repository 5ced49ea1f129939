"""The command line: thin commands over the Python interface; heavy imports happen inside them."""

import os
import sys
from contextlib import suppress

from cyclopts import CycloptsError

from dse.base.errors import INTERRUPTED, DseError
from dse.base.memory_limit import refuse_little_memory
from dse.base.text_file import printable
from dse.cli import compare, designs, importing, kernels, mcp, measured, predict, scale, schema, show  # noqa: F401  (each registers its commands)
from dse.cli.app import app, reader_left, say_no_more, unwrapped
from dse.cli.interrupt import interrupts_kept
from dse.cli.streams import open_to_any_text

unwrapped(app)

WITHOUT_JAX = ("show", "new", "schema", "import")
"""Commands that need little memory."""


def main() -> None:
    """Run the command line: exit 0, 2 on bad input, 130 when interrupted.

    Who interrupts does not wait for threads that still compile, as Python does where it ends in order.
    """
    open_to_any_text()
    code = run_command(sys.argv[1:])
    if code == INTERRUPTED:
        with suppress(OSError):  # whoever reads may have left
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors become a sentence on stderr."""
    try:
        if arguments and arguments[0] not in WITHOUT_JAX and not arguments[0].startswith("-"):
            refuse_little_memory()
        with interrupts_kept():
            app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()  # a pipe that is closed by now is told here, not when the interpreter ends
    except (BrokenPipeError, SystemExit) as stop:
        if not reader_left(stop):
            raise
        say_no_more()
    except (DseError, CycloptsError, OSError) as error:
        print("dse:", printable(" ".join(str(error).split())), file=sys.stderr)
        return 2
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        print(f"dse: memory ran out{said}; give fewer designs at once (--keep front), or more memory", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("dse:", str(stop) or "interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0
