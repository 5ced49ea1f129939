"""SASS opcodes: their class, functional unit, memory space, access width and tensor-core work."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from math import prod

from dse.base.package_tables import read_table
from dse.hardware.data_types import data_types

VOLTA, TURING = 70, 75


class OpClass(IntEnum):
    """What an instruction is, numbered as GCoM numbers its operations (bulk copies are ours)."""

    ALU = 1
    SFU = 2
    DP = 4
    SP = 5
    INTEGER = 6
    LOAD = 8
    STORE = 11
    BARRIER = 13
    MEMORY_BARRIER = 14
    EXIT = 17
    BRANCH = 18
    TEXTURE = 19
    TENSOR = 20
    UNIFORM = 21
    BULK_COPY = 26


class Unit(IntEnum):
    """Functional units of a sub-core (MEM is shared by the SM), numbered as GCoM numbers them."""

    SP = 0
    DP = 1
    INT = 2
    SFU = 3
    MEM = 4
    BRANCH = 5
    TEXTURE = 6
    TENSOR = 7
    UNIFORM = 8


class AddressSpace(IntEnum):
    """Memory spaces; GENERIC is resolved by address while a trace is read, so no trace holds it."""

    NONE = 0
    GLOBAL = 1
    LOCAL = 2
    SHARED = 3
    GENERIC = 4


_TENSOR_DTYPES = {opcode: name for name, kind in data_types().items() for opcode in kind.opcodes}
"""Opcode, or a modifier of any with its dot -> data type."""

UNIT: dict[OpClass, Unit] = {
    OpClass.ALU: Unit.INT,
    OpClass.SFU: Unit.SFU,
    OpClass.DP: Unit.DP,
    OpClass.SP: Unit.SP,
    OpClass.INTEGER: Unit.INT,
    OpClass.LOAD: Unit.MEM,
    OpClass.STORE: Unit.MEM,
    OpClass.BARRIER: Unit.INT,
    OpClass.MEMORY_BARRIER: Unit.MEM,
    OpClass.EXIT: Unit.INT,
    OpClass.BRANCH: Unit.BRANCH,
    OpClass.TEXTURE: Unit.TEXTURE,
    OpClass.TENSOR: Unit.TENSOR,
    OpClass.UNIFORM: Unit.UNIFORM,
    OpClass.BULK_COPY: Unit.MEM,
}
"""The unit that each class is dispatched to (GCoM's TuringOpFUMap)."""


@dataclass(frozen=True)
class Opcode:
    """One opcode with its modifiers, as ``LDG.E.128.SYS``.

    ``width`` [B] is what a lane accesses; ``fma`` counts the multiply-adds of a tensor-core instruction
    [FMA/warp instruction], 0 where the shape is unknown or there is none; ``half`` marks packed FP16 arithmetic.
    """

    text: str
    op_class: OpClass
    space: AddressSpace
    width: int
    atomic: bool
    half: bool
    fma: int

    @property
    def tensor_dtype(self) -> str:
        """Data type whose rate a tensor instruction runs at, by opcode and modifiers (FP16 where none is named)."""
        base, *modifiers = self.text.split(".")
        marks = (*(f".{modifier}" for modifier in modifiers), base)
        return next((_TENSOR_DTYPES[mark] for mark in marks if mark in _TENSOR_DTYPES), "fp16")

    @property
    def shared_bytes(self) -> int:
        """Bytes that a full warp moves to or from shared memory; LDSM and STSM move 8x8 matrices of 16 bits."""
        tokens = self.text.split(".")
        if tokens[0] in ("LDSM", "STSM"):
            return 128 * int(tokens[-1] if tokens[-1] in ("2", "4") else 1)
        return 32 * self.width

    @property
    def unit(self) -> Unit:
        """The functional unit that the instruction is dispatched to."""
        return UNIT[self.op_class]


@cache
def _capabilities() -> dict[str, float]:
    return {row["opcode"]: float(row["compute_capability"]) for row in read_table("sass/capabilities.csv")}


def needed_capability(opcodes: Iterable[Opcode]) -> float:
    """Return the compute capability below which no GPU has all of some instructions; 0 where all GPUs have them."""
    needs = _capabilities()
    return max((needs.get(opcode.text.split(".")[0], 0.0) for opcode in opcodes), default=0.0)


def is_cached(op_class: int, space: int) -> bool:
    """Tell whether an instruction is a load or store of global or local memory."""
    return op_class in (OpClass.LOAD, OpClass.STORE) and space in (AddressSpace.GLOBAL, AddressSpace.LOCAL)


@cache
def opcode_table(binary: int) -> dict[str, tuple[OpClass, AddressSpace, bool, bool]]:
    """Return base opcode -> (class, space, atomic, half) of a binary version (70, 75, else Ampere and later)."""
    column = {VOLTA: "volta", TURING: "turing"}.get(binary, "later")
    return {
        row["opcode"]: (
            OpClass[row[column].upper()],
            AddressSpace[(row["space"] or "none").upper()],
            row["atomic"] == "1",
            row["half"] == "1",
        )
        for row in read_table("sass/opcodes.csv")
        if row[column]
    }


def decode_opcode(text: str, binary: int) -> Opcode | None:
    """Return the opcode that ``text`` names in a binary of that version, or None where it is not known."""
    tokens = [token for token in text.split(".") if token]
    known = opcode_table(binary).get(tokens[0]) if tokens else None
    if known is None:
        return None
    op_class, space, atomic, half = known
    return Opcode(text, op_class, space, access_width(tokens), atomic, half, tensor_fma(tokens))


def access_width(tokens: list[str]) -> int:
    """Return the bytes a lane accesses: the first all-digit token or ``U<digits>``, in bits, else 4 bytes.

    This is how Accel-Sim reads it, so that ``.S8`` counts as 4 bytes.
    """
    for token in tokens:
        digits = token.removeprefix("U")
        if digits.isascii() and digits.isdigit() and len(digits) < 10:
            return int(digits) // 8
    return 4


@cache
def _shapes() -> dict[tuple[str, str], int]:
    return {(row["opcode"], row["shape"]): int(row["fma"]) for row in read_table("sass/tensor_shapes.csv")}


def tensor_fma(tokens: list[str]) -> int:
    """Return the multiply-adds of a tensor-core instruction [FMA/warp instruction] by its shape, else 0.

    Warpgroup instructions write MxNxK for four warps; a quarter is one warp's.
    """
    for token in tokens[1:]:
        if (tokens[0], token) in _shapes():
            return _shapes()[tokens[0], token]
        sides = token.split("x")
        if tokens[0].endswith("GMMA") and len(sides) == 3 and all(s.isascii() and s.isdigit() for s in sides):
            return prod(int(side[:4]) for side in sides) // 4
    return 0
