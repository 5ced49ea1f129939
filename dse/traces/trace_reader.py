"""The CTAs of a kernel's trace, one after another, each as arrays."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dse.base.errors import InputError
from dse.traces import trace_scanner as scan
from dse.traces.opcodes import TURING, VOLTA, AddressSpace, OpClass, Opcode, decode_opcode
from dse.traces.trace_files import KernelFile, TraceText, read_header
from dse.traces.trace_scanner import Columns, OpcodeIndex

_SENTENCES = {
    scan.BAD_DIRECTIVE: "only #BEGIN_TB and #END_TB are known here",
    scan.OUTSIDE: "the line stands outside #BEGIN_TB ... #END_TB",
    scan.NESTED: "#BEGIN_TB before the previous #END_TB",
    scan.BAD_WARP: "'warp = W' with a warp of the CTA was expected",
    scan.REPEATED_WARP: "the CTA holds this warp already",
    scan.BAD_COUNT: "'insts = N' after its 'warp = W' was expected",
    scan.TOO_FEW: "the warp before holds fewer instructions than its 'insts = N' says",
    scan.TOO_MANY: "an instruction more than 'insts = N' says, or no such line",
    scan.BAD_PC: "the program counter is not hexadecimal",
    scan.BAD_MASK: "the mask is not hexadecimal of at most 32 bits",
    scan.BAD_REGISTERS: "at most 1 destination and 4 source registers R<number> were expected",
    scan.BAD_WIDTH: "the memory width is not a decimal number",
    scan.BAD_MODE: "the address mode is not 0 (list), 1 (base and stride) or 2 (base and differences)",
    scan.BAD_ADDRESS: "the addresses do not fit the mask and the mode",
    scan.NO_ADDRESS: "a load or store with active lanes but no addresses",
    scan.TRAILING: "text is left after the instruction",
}
_WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Cta:
    """The instructions of one CTA: ``warp_start`` and ``warp_count`` slice the columns by warp."""

    number: int
    warp_start: np.ndarray
    warp_count: np.ndarray
    columns: Columns

    def warp(self, warp: int) -> slice:
        """Return the rows of a warp."""
        start = int(self.warp_start[warp])
        return slice(start, start + int(self.warp_count[warp]))


class KernelStream:
    """Reads one kernel's CTAs; ``opcodes`` grows with what was met, ``thread_instructions`` counts active lanes.

    The arrays of a CTA are views that the next CTA overwrites.
    """

    def __init__(self, kernel: KernelFile):
        self.kernel = kernel
        self.opcodes: list[Opcode] = []
        op_class, space = _empty_classes(0)
        self._index = OpcodeIndex(np.zeros(64, np.uint64), np.full(64, -1, np.int32), op_class, space)
        self._columns = _columns(1 << 12, 1 << 14)
        self._state = np.zeros(scan.STATE_SIZE, np.int64)

    @property
    def thread_instructions(self) -> int:
        """Active lanes of all instructions read so far."""
        return int(self._state[scan.THREADS])

    def __iter__(self) -> Iterator[Cta]:
        header = self.kernel.header
        with TraceText(self.kernel.path) as text:
            read_header(text)
            self._state[scan.LINE] = text.line
            facts = _facts(header)
            number = 0
            for cta in self._ctas(text, facts, header.warps_per_cta):
                number += 1
                if number > header.ctas:
                    raise InputError(f"{self._where()}: a CTA more than the grid's {header.ctas}")
                yield Cta(number - 1, *cta, self._columns)
            if number < header.ctas:
                raise InputError(f"{self._where()}: the file ends after {number} of the grid's {header.ctas} CTAs")

    def _where(self) -> str:
        return f"{self.kernel.path}, line {self._state[scan.LINE]}"

    def _ctas(self, text: TraceText, facts: np.ndarray, warps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        start, count = self._fresh(warps)
        while block := text.read():
            array = np.frombuffer(block, np.uint8)
            position = 0
            while position < array.size:
                code, position = scan.scan(
                    array, position, array.size, facts, self._state, self._index, self._columns, start, count
                )
                text.line = int(self._state[scan.LINE])
                if code == scan.CTA_END:
                    yield start, np.maximum(count, 0)
                    start, count = self._fresh(warps)
                elif code == scan.GROW:
                    self._grow()
                elif code == scan.NEW_OPCODE:
                    self._learn(block[self._state[scan.TOKEN_FROM] : self._state[scan.TOKEN_TO]])
                elif code != scan.MORE:
                    raise InputError(f"{self._where()}: {_SENTENCES[code]}")
        if self._state[scan.INSIDE]:
            raise InputError(f"{self._where()}: the file ends inside a CTA; #END_TB was expected")

    def _fresh(self, warps: int) -> tuple[np.ndarray, np.ndarray]:
        self._state[[scan.INSTRUCTIONS, scan.ADDRESSES]] = 0
        return np.zeros(warps, np.int64), np.full(warps, -1, np.int64)

    def _grow(self) -> None:
        old = self._columns
        new = _columns(2 * old.pc.size, 2 * old.address.size)
        for before, after in zip(old, new, strict=True):
            after[: len(before)] = before
        self._columns = new

    def _learn(self, token: bytes) -> None:
        """Enter an opcode into the table; raises InputError with its line where it is not known."""
        text, binary = token.decode("latin-1"), self.kernel.header.binary
        opcode = decode_opcode(text, binary)
        where = f"{self.kernel.path}, line {self._state[scan.LINE] + 1}"
        if opcode is None:
            raise InputError(f"{where}: the opcode {text[:60]!r} is not known for binary version {binary}")
        widths = _WIDTHS if binary in (VOLTA, TURING) else (*_WIDTHS, 32)
        if opcode.space not in (AddressSpace.NONE, AddressSpace.SHARED) and opcode.width not in widths:
            raise InputError(f"{where}: {text!r} accesses {opcode.width} bytes a lane; known are {widths}")
        self.opcodes.append(opcode)
        if 2 * len(self.opcodes) > self._index.key.size:
            size = 2 * self._index.key.size
            self._index = self._index._replace(key=np.zeros(size, np.uint64), number=np.full(size, -1, np.int32))
            for number, known in enumerate(self.opcodes[:-1]):
                self._enter(known.text.encode("latin-1"), number)
        op_class, space = _empty_classes(len(self.opcodes))
        op_class[:], space[:] = [o.op_class for o in self.opcodes], [o.space for o in self.opcodes]
        self._index = self._index._replace(op_class=op_class, space=space)
        self._enter(token, len(self.opcodes) - 1)

    def _enter(self, token: bytes, number: int) -> None:
        h = scan.text_hash(np.frombuffer(token, np.uint8), 0, len(token))
        slot = scan.find_opcode(self._index, np.uint64(h))
        self._index.key[slot], self._index.number[slot] = h, number


def _empty_classes(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(size, OpClass.ALU, np.int8), np.full(size, AddressSpace.NONE, np.int8)


def _facts(header) -> np.ndarray:
    bases = np.array([header.shared_base, header.local_base], np.uint64).view(np.int64)
    return np.array([header.warps_per_cta, header.version, header.line_info, *bases], np.int64)


def _columns(rows: int, addresses: int) -> Columns:
    return Columns(
        pc=np.zeros(rows, np.uint64),
        mask=np.zeros(rows, np.uint32),
        opcode=np.zeros(rows, np.int32),
        space=np.zeros(rows, np.int8),
        destination=np.full((rows, 1), -1, np.int16),
        sources=np.full((rows, 4), -1, np.int16),
        source_count=np.zeros(rows, np.int8),
        address_at=np.full(rows, -1, np.int64),
        address=np.zeros(addresses, np.uint64),
    )
