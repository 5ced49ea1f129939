"""How soon commands answer, how much an installation takes by package, and how large a page is.

Run with ``python -m benchmarks.start [--json]`` (a minute on two cores). Each command starts in a process of its own:
cold with no compiled program kept, warm with those that it kept then. Seconds pass on the clock and on processors.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from benchmarks.arguments import parser
from dse.base.units import MEGA

COMMANDS = (
    ("--version",),
    ("show", "gpus"),
    ("run", "h100_sxm", "llama3_8b:phase=decode,batch=8,context=1024"),
)

SPACE = """
base = "h100_sxm"
timing = "roofline"
workloads = { prefill = "llama3_8b:phase=prefill,batch=1,prompt=512" }
objectives = [{ value = "prefill.ttft_ms", goal = "min" }, { value = "die_mm2", goal = "min" }]
[axes]
sm_count = [96, 114, 132, 144]
l2_mib = [25, 50, 100]
"""
"""A space whose page holds every kind of plot."""


def seconds(arguments: tuple[str, ...], kept: str) -> dict[str, float]:
    """Return the seconds of a command in a process of its own, whose compiled programs are kept in a folder."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "dse", *arguments]
    subprocess.run(command, env=os.environ | {"XDG_CACHE_HOME": kept}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"clock": round(time.perf_counter() - start, 2), "processor": round(processor, 2)}


def starts() -> dict[str, dict[str, dict[str, float]]]:
    """Return the seconds of each command, cold and warm."""
    found = {}
    for arguments in COMMANDS:
        with tempfile.TemporaryDirectory() as kept:
            found["dse " + " ".join(arguments[:2])] = {way: seconds(arguments, kept) for way in ("cold", "warm")}
    return found


def installed() -> dict[str, float]:
    """Return the size of each package that the main job installs, its bytecode included [MB = 10^6 B]."""
    names, sizes = ["gpu-dse"], dict[str, float]()
    while names:
        name = names.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in sizes:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # of another system
            continue
        files = {Path(str(file.locate())) for file in package.files or ()}
        sizes[key] = sum(file.stat().st_size for file in files if file.is_file()) / MEGA
        names += [r.split(";")[0] for r in map(_name, package.requires or ()) if r]
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _name(requirement: str) -> str:
    """The name in a requirement; none of an extra's."""
    found = re.match(r"[\w.-]+", requirement)
    return "" if "extra ==" in requirement or not found else found[0]


def page() -> float:
    """Return the size of a small sweep's page [MB]."""
    with tempfile.TemporaryDirectory() as folder:
        space, out = Path(folder) / "small.toml", Path(folder) / "out"
        space.write_text(SPACE, encoding="utf-8")
        call = [sys.executable, "-m", "dse", "sweep", str(space), "-o", str(out)]
        subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
        return (out / "report.html").stat().st_size / MEGA


def main() -> None:
    """Print tables, or with --json one document."""
    options = parser("start", __doc__).parse_args()
    sizes = installed()
    found: dict[str, Any] = {"starts_s": starts(), "page_mb": round(page(), 2)}
    found |= {"install_mb": round(sum(sizes.values()), 1), "packages_mb": {k: round(v, 1) for k, v in sizes.items()}}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for command, ways in found["starts_s"].items():
        told = ", ".join(f"{way} {s['clock']:.2f} s ({s['processor']:.2f} s of processors)" for way, s in ways.items())
        print(f"{command:16} {told}")
    print(f"page of a sweep  {found['page_mb']:.2f} MB")
    print(f"installation     {found['install_mb']:,.0f} MB")
    for name, size in [*found["packages_mb"].items()][:12]:
        print(f"  {name:14} {size:8.1f} MB")


if __name__ == "__main__":
    main()
