"""The command: ``python -m tests.golden [--record] [--only PATTERN]``."""

import argparse
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from tests.golden.cases import CASES, Case
from tests.golden.compare import differences
from tests.golden.inputs import write_inputs
from tests.golden.runs import answer, expected, record

MOST = 20
"""Differences of a case that are printed."""


def main() -> int:
    """Run the chosen cases in this process; return 1 where an answer differs or a command fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden")
    parser.add_argument("--record", action="store_true", help="write the answers to expected/ instead")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases to run, as 'sweep_*'")
    options = parser.parse_args()
    chosen = [case for case in CASES if fnmatch(case.name, options.only)]
    if not chosen:
        parser.error(f"no case is called {options.only!r}: {', '.join(case.name for case in CASES)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        different = sum(_run(case, folder, options.record) for case in chosen)
    print(f"{len(chosen)} cases, {different} of them differ")
    return 1 if different else 0


def _run(case: Case, folder: Path, recording: bool) -> bool:
    """Run one case and print a line of it, and its differences; return whether there are any."""
    begin = time.monotonic()
    try:
        got = answer(case, folder)
        found = [] if recording else differences(expected(case), got, case.tolerance)
    except Exception as error:  # the other cases still run
        got, found = None, [f"{type(error).__name__}: {error}"]
    if recording and got:
        record(case, got)
    verdict = f"{len(found)} differences" if found else "recorded" if recording else "equal"
    print(f"{case.name}: {verdict}, {time.monotonic() - begin:.1f} s", flush=True)
    for line in found[:MOST]:
        print(f"  {case.name}: {line}")
    if len(found) > MOST:
        print(f"  {case.name}: and {len(found) - MOST} more")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
