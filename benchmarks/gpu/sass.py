"""A kernel's machine code: registers and spills as ptxas tells them, instructions that a thread executes, by pipe."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.gpu.h100 import ARCHITECTURE, pipes, tool

_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_LABEL = re.compile(r"^(\.L_\w+):")
_ENTRY = re.compile(r"Compiling entry function '([\w$]+)'")
_SECTION = re.compile(r"^//-+ \.text\.([\w$]+)\s+-+$", re.MULTILINE)
_TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclass(frozen=True)
class Kernel:
    """What a thread of a kernel takes: ``instructions`` by opcode, loops by their passes; registers; spilled bytes.

    ``counted``: whether the passes of all its loops were found; one pass is counted of others.
    """

    name: str
    instructions: Counter[str]
    registers: int
    spill_bytes: int
    counted: bool

    @property
    def total(self) -> int:
        """Instructions of a thread."""
        return sum(self.instructions.values())


@dataclass(frozen=True)
class Line:
    """An instruction: its opcode with and without what modifies it, the predicate it has, and its operands."""

    opcode: str
    whole: str
    predicate: str
    operands: str
    target: int | None


def kernels_of(ptx: Path) -> list[Kernel]:
    """Return the kernels of a PTX file, assembled and disassembled."""
    if not re.search(r"\.entry\s", ptx.read_text(encoding="utf-8")):
        return []
    cubin = ptx.with_suffix(".cubin")
    said = _run("ptxas", "-v", f"-arch={ARCHITECTURE}", str(ptx), "-o", str(cubin)).stderr
    return kernels_in(said, _run("nvdisasm", "-c", str(cubin)).stdout)


def kernels_in(said: str, code: str) -> list[Kernel]:
    """Return the kernels that ``ptxas -v`` told of, given their disassembled code."""
    told, sections = _ENTRY.split(said)[1:], _SECTION.split(code)[1:]
    code_of, found = dict(zip(sections[::2], sections[1::2], strict=True)), []
    for name, text in zip(told[::2], told[1::2], strict=True):
        instructions, counted = executed(code_of[name])
        found.append(Kernel(name, instructions, *resources(text), counted))
    return found


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(tool(name)), *arguments], capture_output=True, text=True, check=True)


def resources(said: str) -> tuple[int, int]:
    """Return registers and spilled bytes from what ``ptxas -v`` said of one kernel."""
    registers = re.search(r"Used (\d+) registers", said)
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", said)
    return int(registers[1]) if registers else 0, sum(map(int, spilled))


def lines(code: str) -> list[Line]:
    """Return the instructions of disassembled code."""
    places: dict[str, int] = {}
    found: list[tuple[re.Match[str], str]] = []
    for text in code.splitlines():
        if label := _LABEL.match(text):
            places[label[1]] = len(found)
        elif line := _CODE.match(text):
            target = _TARGET.search(line[4])
            found.append((line, target[1] if target else ""))
    return [Line(x[3].split(".")[0], x[3], x[2] or "", x[4], places.get(target)) for x, target in found]


def executed(code: str) -> tuple[Counter[str], bool]:
    """Return the instructions that a thread executes, by opcode, and whether the passes of all loops were found.

    Of a branch both ways are counted; what only a call reaches (a division's slow way) and padding are not.
    """
    all_lines = lines(code)
    reached = _reached(all_lines)
    times, counted = dict.fromkeys(reached, 1), True
    for end in reached:
        start = all_lines[end].target
        if all_lines[end].opcode == "BRA" and start is not None and start <= end and _returns(all_lines, start, end):
            passes = passes_of(all_lines, start, end)
            counted = counted and passes is not None
            for place in range(start, end + 1):
                if place in times:
                    times[place] *= passes or 1
    found: Counter[str] = Counter()
    for place, count in times.items():
        found[all_lines[place].opcode] += count
    return found, counted


def _next(all_lines: list[Line], place: int) -> list[int]:
    """Return where a thread may be after an instruction."""
    line = all_lines[place]
    after = [place + 1] if place + 1 < len(all_lines) else []
    if line.opcode in ("EXIT", "RET"):
        return after if line.predicate else []
    if line.opcode == "BRA" and line.target is not None:
        return [line.target, *(after if line.predicate or ", " in line.operands else [])]
    return after


def _reached(all_lines: list[Line]) -> list[int]:
    """Return the places that a thread may reach from the begin, without calls, in order."""
    seen: set[int] = set()
    left = [0] if all_lines else []
    while left:
        place = left.pop()
        if place not in seen:
            seen.add(place)
            left += _next(all_lines, place)
    return sorted(seen)


def _returns(all_lines: list[Line], start: int, end: int) -> bool:
    """Whether a backward branch closes a loop: its end can be reached from its start, both part of it."""
    seen: set[int] = set()
    left = [start]
    while left:
        place = left.pop()
        if place == end:
            return True
        if place not in seen and place >= start:
            seen.add(place)
            left += _next(all_lines, place)
    return False


def passes_of(all_lines: list[Line], start: int, end: int) -> int | None:
    """Return how often a loop runs that counts a register to a number, None where it does not.

    The branch back is taken as long as a comparison of the counter with a number holds, or the loop is left where it
    does not.
    """
    back, end = end, _decided(all_lines, start, end)
    line = _comparison(all_lines[start:end], all_lines[end].predicate.lstrip("!"))
    if line is None:
        return None
    numbers = re.findall(r"-?0x[0-9a-f]+", line.operands)
    registers = re.findall(r"\bU?R\d+\b", line.operands)
    if len(numbers) != 1 or len(registers) != 1:
        return None
    counter, bound = registers[0], int(numbers[0], 16)
    held = _held(all_lines[start:back], counter)
    step, first = _step(all_lines[start:end], counter, held), _first(all_lines[:start], held)
    if not step or first is None:
        return None
    passes = -(-(bound - first) // step)
    return max(passes + (".LE" in line.whole or ".GE" in line.whole) * (not (bound - first) % step), 1)


def _decided(all_lines: list[Line], start: int, end: int) -> int:
    """Return the place that decides on another pass: the branch back, or the one exit before one without predicate."""
    if all_lines[end].predicate:
        return end
    outside = [
        place
        for place in range(start, end)
        if (line := all_lines[place]).predicate
        and (line.opcode == "EXIT" or (line.opcode == "BRA" and not start <= (line.target or 0) <= end))
    ]
    return outside[0] if len(outside) == 1 else end


def _comparison(before: list[Line], predicate: str) -> Line | None:
    """Return the comparison that a predicate holds in the end, copied from another one or not."""
    for line in reversed(before):
        result, *operands = (x.strip() for x in line.operands.split(","))
        if result == predicate:
            if line.opcode in ("ISETP", "UISETP"):
                return line
            copied = {x for x in operands if "P" in x} - {"PT", "UPT"}
            if line.opcode not in ("PLOP3", "UPLOP3") or len(copied) != 1:
                return None
            predicate = copied.pop()
    return None


_ADDS = ("IADD3", "UIADD3", "VIADD", "IADD", "IMAD")


def _held(body: list[Line], counter: str) -> str:
    """Return the register that holds a loop's counter between passes: itself, or the one it is moved to after an
    addition to that one."""
    for line in body:
        operands = [x.strip() for x in line.operands.split(",")]
        if line.opcode in ("MOV", "UMOV") and operands[1:] == [counter] and _step(body, counter, operands[0]):
            return operands[0]
    return counter


def _step(body: list[Line], counter: str, held: str) -> int | None:
    """Return what a loop adds to what its counter was ``held`` in, in a pass."""
    steps = []
    for line in body:
        operands = [x.strip() for x in line.operands.split(",")]
        if line.opcode in _ADDS and operands[0] == counter and held in [x.split(".")[0] for x in operands[1:]]:
            steps += [int(x, 16) for x in operands[1:] if re.fullmatch(r"-?0x[0-9a-f]+", x)][-1:]
    return sum(steps) if steps else None


def _first(before: list[Line], counter: str) -> int | None:
    """Return the number that a counter has where its loop begins."""
    for line in reversed(before):
        operands = [x.strip() for x in line.operands.split(",")]
        if operands[0] == counter:
            return _moved(line, operands)
        if line.opcode == "CS2R" and _after(operands[0]) == counter:  # it fills two registers
            return 0
    return None


def _moved(line: Line, operands: list[str]) -> int | None:
    """Return the number that an instruction moves; None where it does something else."""
    number = operands[-1]
    if line.opcode in ("MOV", "UMOV") or line.whole.startswith("IMAD.MOV"):
        return 0 if number in ("RZ", "URZ") else int(number, 16) if number.startswith(("0x", "-0x")) else None
    if line.opcode == "HFMA2" and operands[1:3] == ["-RZ", "RZ"]:  # -0 x 0 plus two halves: a move by another pipe
        high, low = (int(np.float16(x).view(np.uint16)) for x in operands[3:5])
        return high << 16 | low
    return 0 if line.opcode == "CS2R" else None


def _after(register: str) -> str:
    return f"R{int(register[1:]) + 1}" if re.fullmatch(r"R\d+", register) else ""


def by_pipe(instructions: Mapping[str, int]) -> dict[str, float]:
    """Return the instructions of each pipe; opcodes of no pipe issue alone."""
    return {name: sum(instructions.get(code, 0) for code in codes) for name, (_, codes) in pipes().items()}
