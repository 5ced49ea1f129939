"""What every command stands on: the app and its groups, shared options, and JSON on stdout."""

import json
import os
import sys
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter, Token

from dse import __version__
from dse.base.errors import InputError

app = App(
    name="dse",
    version=f"dse {__version__}",
    help="Explore GPU designs: state a space and a workload, get the Pareto set with its reasons.",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
show = App(name="show", help="Print what is shipped: GPUs, networks, engines, spaces, attributes, metrics.")
app.command(show)
calibrate = App(name="calibrate", help="Fit coefficients to measurements.")
app.command(calibrate)
app.register_install_completion_command(add_to_startup=False)


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Return the whole number that an option is given; the library would round 1.5."""
    given = tokens[0]
    try:
        return int(given.value)
    except ValueError:
        raise InputError(f"{given.keyword} {given.value} is not accepted; give a whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document on stdout.")]
Notes = Annotated[
    bool,
    Parameter(name="--notes", negative="", help="Print every note on how sure the answer is, not their number."),
]
Out = Annotated[Path | None, Parameter(name=["-o", "--out"], help="Folder for the results.")]


def unwrapped(app: App) -> App:
    """Return an app whose commands' docstrings have a line a paragraph: help wraps them to the terminal's width."""
    for name in app:
        command = app[name]
        if (function := command.default_command) is not None and function.__module__.startswith("dse."):
            function.__doc__ = one_line_paragraphs(function.__doc__ or "")
        unwrapped(command)
    return app


def one_line_paragraphs(text: str) -> str:
    """Return a docstring in NumPy's style with the lines of each paragraph joined, headings and names left alone."""
    lines: list[str] = []
    for line in cleandoc(text).split("\n"):
        before = lines[-1] if lines else ""
        indented = line.startswith("    ") and before.startswith("    ")
        prose = "Parameters" not in lines and before and line and not line.startswith(" ") and line != "Parameters"
        if indented or prose:
            lines[-1] = f"{before} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def made(path: Path) -> Path:
    """Return the path of a file to be written, its folder made; raises InputError where it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another path with -o") from None
    return path


def reader_left(error: BaseException) -> bool:
    """Tell whether an error means that a reader of the output, such as head, has seen enough.

    A terminal of rich's turns the closed pipe into an exit of its own.
    """
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def say_no_more() -> None:
    """Send what is still to be flushed nowhere, so that the interpreter ends without a complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def print_notes(*notes: str) -> None:
    """Print notes on stderr, beside an answer that stdout holds: a line each, which the program's name begins."""
    for note in notes:
        print(f"dse: {note}", file=sys.stderr)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout; a value that is not finite is an error."""
    print(json.dumps(document, indent=1, allow_nan=False))
