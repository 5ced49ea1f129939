"""Optimised HLO as text: how often its loops run, and the bytes that an instruction reads and writes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s64": 8, "u64": 8, "f64": 8, "c64": 8}
"""Type -> bytes of a number, 4 where not named."""

SLICES = ("dynamic-slice", "slice", "gather")
"""Operations that read as much as they return."""

VIEWS = ("bitcast", "reshape", "get-tuple-element", "copy", "transpose", "convert")

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_SHAPE = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\]")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


@dataclass(frozen=True)
class Instruction:
    """A line of a computation; ``operands`` by name, ``calls``: the computation of a fusion, ``trips`` of a loop."""

    name: str
    shape: str
    operation: str
    operands: tuple[str, ...]
    is_root: bool
    calls: str
    trips: int | None

    @cached_property
    def size(self) -> float:
        """Bytes of the result."""
        return sum(BYTES.get(kind, 4) * prod(map(int, filter(None, n.split(",")))) for kind, n in self._shapes)

    @property
    def _shapes(self) -> list[tuple[str, str]]:
        return _SHAPE.findall(self.shape)


Computation = dict[str, Instruction]


class Module:
    """A compiled module: ``computations`` by name, each its instructions by name."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, Computation] = {}
        self.instructions: Computation = {}
        current: Computation = {}
        for line in text.splitlines():
            if found := _COMPUTATION.match(line):
                current = self.computations.setdefault(found[1], {})
            elif (found := _INSTRUCTION.match(line)) and (one := _instruction(found)):
                current[one.name] = self.instructions[one.name] = one

    @property
    def trips(self) -> Mapping[str, int | None]:
        """How often each loop runs, None where it is not known."""
        return {name: one.trips for name, one in self.instructions.items() if one.operation == "while"}

    def bytes_of(self, name: str) -> float:
        """Return the bytes that an instruction reads and writes; 0 for one that the module does not have.

        Of an array from which a fusion takes slices, those; of one into which it writes a part, that part.
        """
        one = self.instructions.get(name)
        if one is None:
            return 0.0
        operands = [self.instructions[x].size for x in one.operands if x in self.instructions]
        body = self.computations.get(one.calls)
        if one.operation in SLICES:
            return 2.0 * one.size
        if one.operation != "fusion" or body is None:
            return one.size + sum(operands)
        return sum(_read(body, place, size) for place, size in enumerate(operands)) + _written(body)


def _instruction(found: re.Match[str]) -> Instruction:
    rest, depth, end = found[5], 1, 0
    for end, letter in enumerate(rest):  # noqa: B007
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            break
    attributes = rest[end:]
    calls, trips = re.search(r"calls=%?([\w.\-]+)", attributes), _TRIPS.search(attributes)
    given = (found[4], rest[:end])
    operands = (given[1],) if given[0] == "parameter" else tuple(re.findall(r"%([\w.\-]+)", given[1]))
    root, times = bool(found[1]), int(trips[1]) if trips else None
    return Instruction(found[2], found[3], found[4], operands, root, calls[1] if calls else "", times)


def _users(body: Computation, name: str) -> list[Instruction]:
    return [one for one in body.values() if name in one.operands and one.operation != "parameter"]


def _read(body: Computation, place: int, size: float) -> float:
    """Return the bytes that a fusion reads of its operand number ``place``, of ``size`` bytes."""
    name = next((x.name for x in body.values() if x.operation == "parameter" and x.operands == (str(place),)), "")
    users = _users(body, name)
    if users and all(one.operation in SLICES and one.operands[0] == name for one in users):
        return min(size, sum(one.size for one in users))
    if users and all(one.operation == "dynamic-update-slice" and one.operands[0] == name for one in users):
        return 0.0
    return size


def _written(body: Computation) -> float:
    root = next(one for one in body.values() if one.is_root)
    parts = [body[x] for x in root.operands if x in body] if root.operation == "tuple" else [root]
    return sum(_result(body, one) for one in parts)


def _result(body: Computation, one: Instruction) -> float:
    while one.operation in VIEWS and one.operands and one.operands[0] in body:
        one = body[one.operands[0]]
    return body[one.operands[1]].size if one.operation == "dynamic-update-slice" else one.size
