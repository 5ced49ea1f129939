"""What a sweep, a search and a calibration are to a GPU, from compiling them for an H100 that is not there.

Run with ``python -m benchmarks.gpu_program [--json] [--write | --run] [PROGRAM ...]`` (five minutes on two cores); it
needs ``pip install -e '.[gpu-aot]'``, and no GPU. ``--write`` puts the table into benchmarks/README.md.

Launches, scratch, bytes, instructions, registers and spills are facts of compiling. Designs a second are a model
(benchmarks/gpu/h100.csv): each kernel takes the largest of its instructions over three quarters of the issue slots, its
busiest pipe, and its bytes over 3 TB/s; each launch 1.5 us more. The bound is the same without launches and with every
issue slot. Bytes count what kernels read and write, in the L2 or beyond.

``--run``: instead, runs the sweeps' and the search's programs on the GPU that JAX sees, some 5 s each after a warm-up
call, and prints designs a second, beside projection and bound where the table in benchmarks/README.md is of this kind
of GPU. It needs ``pip install -e '.[cuda]'``. Without a GPU it refuses.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.arguments import parser
from benchmarks.gpu import running
from benchmarks.gpu.h100 import KIND, environment, missing
from benchmarks.gpu.programs import evaluating, subjects
from benchmarks.gpu.reading import figures_of

COLUMNS = {
    "program": "{}",
    "launches_per_million": "{:,.0f}",
    "scratch_mib": "{:,.0f}",
    "bytes_per_design": "{:,.0f}",
    "instructions_per_design": "{:,.0f}",
    "instructions_per_pair": "{:,.0f}",
    "most_registers": "{}",
    "spill_bytes": "{}",
    "bound_designs_per_second": "{:,.0f}",
    "projected_designs_per_second": "{:,.0f}",
    "bound_by": "{}",
}

BEGIN, END = "<!-- python -m benchmarks.gpu_program --write -->", "<!-- end -->"
"""What stands around the table in the page."""

README = Path(__file__).with_name("README.md")


def measured(wanted: Sequence[str] = (), module: str = "benchmarks.gpu.compiled") -> list[dict[str, Any]]:
    """Return the figures of programs, all by default; ``module`` compiles them in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        dump, index = Path(folder, "dump"), Path(folder, "index.json")
        command = [sys.executable, "-m", module, str(dump), str(index), *wanted]
        subprocess.run(command, env=os.environ | environment(dump), check=True, stdout=sys.stderr)
        return [figures_of(dump, one) for one in json.loads(index.read_text(encoding="utf-8"))]


def table(programs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the figures as a Markdown table; "at least" where a loop does not tell how often it runs."""
    rows = ["| " + " | ".join(name.replace("_", " ") for name in COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for one in programs:
        least = "" if one["all_loops_counted"] else "at least "
        cells = [
            "" if one[name] is None else least * name.startswith(("instr", "launch")) + form.format(one[name])
            for name, form in COLUMNS.items()
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def written(page: str, lines: Sequence[str]) -> str:
    """Return a page whose table of these figures is a new one."""
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:begin] + "\n" + "\n".join(lines) + "\n" + page[end:]


def projected(page: str) -> dict[str, dict[str, float]]:
    """Return what a page's table tells of each program: the projection and the bound."""
    lines = page[page.index(BEGIN) : page.index(END)].splitlines()[3:]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    names = ("projected_designs_per_second", "bound_designs_per_second")
    places = {name: list(COLUMNS).index(name) for name in names}
    return {row[0]: {name: float(row[at].replace(",", "")) for name, at in places.items() if row[at]} for row in rows}


def refuse(sentence: str) -> NoReturn:
    """Say why nothing is measured, and end with exit code 2."""
    print(sentence, file=sys.stderr)
    raise SystemExit(2)


def run(wanted: Sequence[str], as_json: bool) -> None:
    """Run programs on the GPU that is there and print their figures."""
    if why := running.refusal():
        refuse(why)
    programs = running.run(wanted, {KIND: projected(README.read_text(encoding="utf-8"))})
    print(
        json.dumps({"device": programs[0]["device"], "programs": programs})
        if as_json
        else "\n".join(running.table(programs))
    )


def compile_for_h100(wanted: Sequence[str], as_json: bool, write: bool) -> None:
    """Compile programs for an H100 and print their figures."""
    if lacking := missing():
        refuse(f"benchmarks.gpu_program needs {', '.join(lacking)}: pip install 'gpu-dse[gpu-aot]'")
    programs = measured(wanted)
    if write:
        README.write_text(written(README.read_text(encoding="utf-8"), table(programs)), encoding="utf-8")
    if as_json:
        print(json.dumps({"device": "H100 SXM5, compiled for and not run on", "programs": programs}))
        return
    print(*table(programs), sep="\n")
    for one in programs:
        print(f"\n{one['program']}: {one['designs_per_call']:,} designs a call; heaviest kernels")
        for kernel in one["heaviest"]:
            print(
                "  {kernel}: {instructions_per_design:,.0f} instructions a design, {registers} registers, "
                "{spill_bytes} bytes spilled".format(**kernel)
            )


def main() -> None:
    """Print the figures as a table and the heaviest kernels, or as JSON with --json."""
    known = parser("gpu_program", __doc__)
    how = known.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    how.add_argument("--run", action="store_true", help="run the programs on the GPU that is there, instead")
    known.add_argument("programs", nargs="*", metavar="PROGRAM", help="by name; all by default")
    options = known.parse_args()
    every = list((evaluating if options.run else subjects)(Path()))
    if unknown := set(options.programs) - set(every):
        known.error(f"{', '.join(sorted(unknown))} unknown; programs are {', '.join(map(repr, every))}")
    if options.run:
        run(options.programs, options.json)
    else:
        compile_for_h100(options.programs, options.json, options.write)


if __name__ == "__main__":
    main()
