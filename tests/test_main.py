"""The command as a process: interrupted while libraries are imported, or at work; streams of all kinds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.{name})
except BaseException:
    raise ImportError("what a library makes of it")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interruption_inside_an_import_is_none_of_the_library_s(name: str, tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text(SWALLOWS.format(name=name))
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from dse.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "dse: interrupted\n")


COMMAND = (
    "import atexit, os, signal, threading, time; from dse import __main__ as begin; import dse.cli; "
    "dse.cli.run_command = {work}; begin.main()"
)
"""The command, with other work to do."""


def of(work: str, **options: object) -> "subprocess.CompletedProcess[str]":
    """Run a command whose work is an expression of its arguments."""
    program = COMMAND.format(work=f"lambda arguments: {work}")
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, **options)  # pyright: ignore


def test_sigterm_unwinds_as_ctrl_c_does() -> None:
    ended = of("os.kill(os.getpid(), signal.SIGTERM)")
    assert "KeyboardInterrupt" in ended.stderr  # what run_command, here replaced, makes 130 of


def test_any_text_is_printed_to_few_characters() -> None:
    ended = of("print('\u221213 \u00b5s \u00e9 \u2603')", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (ended.returncode, ended.stdout) == (0, "-13 us e ?\n")


def test_what_is_closed_takes_every_text() -> None:
    command = 'exec "$0" -c "$1" 2>&-'
    program = COMMAND.format(work="lambda a: print(1, file=__import__('sys').stderr)")
    shell = ["sh", "-c", command, sys.executable, program]
    assert subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=True).stdout == ""


def test_a_command_leaves_with_its_code_once_all_is_said() -> None:
    thread = "threading.Thread(target=lambda: time.sleep(0.2) or print('thread')).start()"
    ended = of(f"[atexit.register(print, 'at exit'), {thread}, print('answer')] and 2")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "answer\nthread\nat exit\n", "")


def test_an_error_of_our_own_is_told_as_python_does() -> None:
    ended = of("1 // 0")
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr
