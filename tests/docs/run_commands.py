"""Run the commands of README.md and of docs/, a page after the other in a folder of its own.

Run with ``python -m tests.docs.run_commands [PAGE...]``: pages by name, all by default. ``mine.toml`` is there as
``dse new`` writes it, but for fewer values. Commands that need files, machines or a GPU of the reader's are left out,
and so are those that only install; each with its reason. Exits with 1 where a command fails.
"""

import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from tests.docs.test_readme import PAGES, ROOT, commands

LONGEST = 600
"""Seconds that a command may take."""

SMALL = """
base = "h100_sxm"
[axes]
tensor_fma_bf16 = [512, 640, 768]
sm_count = [120, 132, 144]
[workloads]
prefill = "llama3_8b:phase=prefill,batch=1,prompt=512"
decode = "llama3_8b:phase=decode,batch=8,context=1024"
[[objectives]]
value = "prefill.ttft_ms"
goal = "min"
[[objectives]]
value = "die_mm2"
goal = "min"
"""
"""A space of the reader's, small enough to be swept in seconds."""

OWN = re.compile(r"\.(csv|toml|config|xlsx|json|ncu-rep|tracez?)$|^traces?/|^shards/\*|\$")
"""What names a file or a folder of the reader's."""

ELSEWHERE = ("--cluster", "--storage", "measure", "mcp", "--install-completion")
"""Options and commands that need other machines, a GPU or a client."""


def written(words: list[str]) -> set[str]:
    """Return the files with an end that a command writes."""
    after = {words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-o", "--out", "new")}
    return {name for name in after if Path(name).suffix}


def reason_to_leave_out(words: list[str], folder: Path) -> str:
    """Return why a command is not run, "" where it is."""
    for word in ELSEWHERE:
        if word in words:
            return f"needs what {word} needs"
    for name in (name for word in words for name in re.split("[:,=]", word)):
        if OWN.search(name) and name not in written(words) and not (folder / name).exists():
            return f"needs {name}"
    return ""


def run_page(page: Path) -> list[str]:
    """Run the commands of a page and return those that failed."""
    failed = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "mine.toml").write_text(SMALL, encoding="utf-8")
        for name in ("spaces", "experiments"):
            (folder / name).symlink_to(ROOT / name)
        for words in commands(page):
            said = " ".join(["dse", *words])
            if words[:1] == ["new"]:
                (folder / words[1]).unlink(missing_ok=True)
            if reason := reason_to_leave_out(words, folder):
                print(f"  left out: {said} ({reason})")
                for name in written(words):
                    (folder / name).unlink(missing_ok=True)  # another file than the one of its name that is there
                continue
            if not run(words, folder):
                failed.append(f"{page.relative_to(ROOT)}: {said}")
            if words[:1] == ["new"]:
                (folder / words[1]).write_text(SMALL, encoding="utf-8")
    return failed


def run(words: list[str], folder: Path) -> bool:
    """Run one command and tell whether it answered."""
    call = [sys.executable, "-m", "dse", *words]
    try:
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        print(f"  FAILED: dse {' '.join(words)} (more than {LONGEST} s)")
        return False
    print(f"  {'ran' if done.returncode == 0 else 'FAILED'}: dse {' '.join(words)}", flush=True)
    if done.returncode:
        print(f"    {done.stderr.strip()[-500:]}")
    return done.returncode == 0


def main() -> None:
    """Run the pages that are named."""
    known = ArgumentParser("python -m tests.docs.run_commands", description=__doc__)
    known.add_argument("pages", nargs="*", metavar="PAGE", help="the name of a page, as sweeps.md; all by default")
    named = known.parse_args().pages
    if unknown := set(named) - {page.name for page in PAGES}:
        known.error(f"no page is called {', '.join(sorted(unknown))}")
    failed = []
    for page in PAGES:
        if page.name != "CONTRIBUTING.md" and (not named or page.name in named):
            print(page.relative_to(ROOT), flush=True)
            failed += run_page(page)
    print(f"{len(failed)} commands failed", *failed, sep="\n  ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
