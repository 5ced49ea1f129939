"""The command as a process: Ctrl-C while libraries are imported."""

import subprocess
import sys
from pathlib import Path

SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
except BaseException:
    raise ImportError("what a library makes of it")
"""


def test_an_interruption_inside_an_import_is_none_of_the_library_s(tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text(SWALLOWS)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from dse.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "dse: interrupted\n")
