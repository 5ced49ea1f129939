"""Compiled scanner of the text between ``#BEGIN_TB`` and ``#END_TB`` of an Accel-Sim trace.

It never raises: what it cannot read ends the scan with a code, which :mod:`dse.traces.trace_files` turns into a
sentence. Format: Accel-Sim's trace_parser.cc (tracer version 3, and what versions 4 and 5 add).
"""

from typing import NamedTuple

import numpy as np

from dse.base.compiled_loops import njit
from dse.traces.opcodes import AddressSpace, OpClass
from dse.traces.trace_tokens import (
    delta_addresses,
    is_blank,
    list_addresses,
    population,
    read_assigned,
    read_decimal,
    read_hex,
    read_registers,
    skip_blanks,
    starts_with,
    stride_addresses,
    token_end,
)

# Outcomes of a scan. Those up to CTA_END are not errors.
MORE, GROW, NEW_OPCODE, CTA_END = 0, 1, 2, 3
BAD_DIRECTIVE, OUTSIDE, NESTED, BAD_WARP, REPEATED_WARP, BAD_COUNT = 4, 5, 6, 7, 8, 9
TOO_FEW, TOO_MANY, BAD_PC, BAD_MASK, BAD_REGISTERS, BAD_WIDTH = 10, 11, 12, 13, 14, 15
BAD_MODE, BAD_ADDRESS, NO_ADDRESS, TRAILING = 16, 17, 18, 19

# Slots of the scanner's state.
INSIDE, LINE, WARP, LEFT, INSTRUCTIONS, ADDRESSES, TOKEN_FROM, TOKEN_TO, THREADS = range(9)
STATE_SIZE = 9

# Slots of the kernel's facts.
N_WARPS, VERSION, LINE_INFO, SHARED_BASE, LOCAL_BASE = range(5)

LOCAL_WINDOW = 16384
"""Bytes of the window of local memory (Accel-Sim: 16 KiB)."""

MOST_INSTRUCTIONS = 1 << 31
_LOAD, _STORE, _BULK = int(OpClass.LOAD), int(OpClass.STORE), int(OpClass.BULK_COPY)
_NONE, _GLOBAL, _LOCAL = int(AddressSpace.NONE), int(AddressSpace.GLOBAL), int(AddressSpace.LOCAL)
_SHARED, _GENERIC = int(AddressSpace.SHARED), int(AddressSpace.GENERIC)


class Columns(NamedTuple):
    """Instructions in file order; ``address_at`` points at one address per active lane, -1 where there are none."""

    pc: np.ndarray
    mask: np.ndarray
    opcode: np.ndarray
    space: np.ndarray
    destination: np.ndarray
    sources: np.ndarray
    source_count: np.ndarray
    address_at: np.ndarray
    address: np.ndarray


class OpcodeIndex(NamedTuple):
    """Open-addressed table from the hash of an opcode's text to its number, and what the scanner needs of it."""

    key: np.ndarray
    number: np.ndarray
    op_class: np.ndarray
    space: np.ndarray


@njit()
def text_hash(text, start, end):
    """Return the FNV-1a hash of text[start:end]."""
    h = np.uint64(14695981039346656037)
    for p in range(start, end):
        h = (h ^ np.uint64(text[p])) * np.uint64(1099511628211)
    return h


@njit()
def find_opcode(index, h):
    """Return the slot of a hash in the table: its own, or the free one where it would stand."""
    mask = np.uint64(index.key.size - 1)
    slot = h & mask
    while index.number[slot] >= 0 and index.key[slot] != h:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit()
def _resolved(space, facts, mask, address_at, address):
    """Return the memory space, a generic one by its first active lane's address."""
    if space != _GENERIC:
        return space
    shared, local = np.uint64(facts[SHARED_BASE]), np.uint64(facts[LOCAL_BASE])
    if shared == 0 or local == 0:
        return _SHARED
    if mask == 0 or address_at < 0:
        return _NONE
    first = address[address_at]
    if shared <= first < local:
        return _SHARED
    if local <= first < local + np.uint64(LOCAL_WINDOW):
        return _LOCAL
    return _GLOBAL


@njit()
def _memory(text, p, end, facts, state, columns, i, op_class, space):
    """Read the width, mode and addresses of an instruction; return (code, position after them)."""
    width, p = read_decimal(text, p, end)
    if p < 0 or width < 0:
        return BAD_WIDTH, 0
    mask, at = np.int64(columns.mask[i]), state[ADDRESSES]
    columns.address_at[i] = -1
    if op_class == _BULK:
        columns.space[i] = _NONE
        return MORE, end  # descriptors and tiles, not lane addresses: their layout is not read
    if width > 0:
        mode, p = read_decimal(text, p, end)
        if p < 0 or mode < 0 or mode > 2:
            return BAD_MODE, 0
        if mode == 0:
            p = list_addresses(text, p, end, mask, columns.address, at)
        elif mode == 1:
            p = stride_addresses(text, p, end, mask, columns.address, at)
        else:
            p = delta_addresses(text, p, end, mask, columns.address, at)
        if p < 0:
            return BAD_ADDRESS, 0
        columns.address_at[i] = at
        state[ADDRESSES] = at + population(mask)
    resolved = _NONE
    if op_class in (_LOAD, _STORE):
        needs = space != _SHARED and (space != _GENERIC or (facts[SHARED_BASE] != 0 and facts[LOCAL_BASE] != 0))
        if width == 0 and mask != 0 and needs:
            return NO_ADDRESS, 0
        resolved = _resolved(space, facts, mask, columns.address_at[i], columns.address)
    columns.space[i] = resolved
    return MORE, p


@njit()
def _prefix(text, p, end, facts):
    """Step over the leading integers of old tracers and of line information; return the position or -1."""
    for _ in range((4 if facts[VERSION] < 3 else 0) + (1 if facts[LINE_INFO] else 0)):
        _, p = read_decimal(text, p, end)
        if p < 0:
            return -1
    return p


@njit()
def _trailing(text, p, end, version):
    """Tell whether text is left after an instruction; tracers from version 4 on append an immediate."""
    p = skip_blanks(text, p, end)
    if p < end and version > 3:
        _, p = read_decimal(text, p, end)
        p = -1 if p < 0 else skip_blanks(text, p, end)
    return p != end


@njit()
def _instruction(text, p, end, facts, state, index, columns):
    """Read one instruction line into row ``state[INSTRUCTIONS]``; return a code."""
    i = state[INSTRUCTIONS]
    p = _prefix(text, p, end, facts)
    pc, p = read_hex(text, p, end) if p >= 0 else (np.uint64(0), -1)
    if p < 0:
        return BAD_PC
    mask, p = read_hex(text, p, end)
    if p < 0 or mask > np.uint64(0xFFFFFFFF):
        return BAD_MASK
    count, p = read_registers(text, p, end, 1, columns.destination, i)
    if p < 0:
        return BAD_REGISTERS
    if count == 0:
        columns.destination[i, 0] = -1
    start = skip_blanks(text, p, end)
    p = token_end(text, start, end)
    state[TOKEN_FROM], state[TOKEN_TO] = start, p
    slot = find_opcode(index, text_hash(text, start, p))
    if index.number[slot] < 0:
        return NEW_OPCODE
    number = index.number[slot]
    count, p = read_registers(text, p, end, 4, columns.sources, i)
    if p < 0:
        return BAD_REGISTERS
    columns.pc[i], columns.mask[i], columns.opcode[i], columns.source_count[i] = pc, mask, number, count
    code, p = _memory(text, p, end, facts, state, columns, i, index.op_class[number], index.space[number])
    if code != MORE:
        return code
    if _trailing(text, p, end, facts[VERSION]):
        return TRAILING
    state[INSTRUCTIONS] = i + 1
    state[LEFT] -= 1
    state[THREADS] += population(np.int64(mask))
    return MORE


@njit()
def _directive(text, p, end, state):
    if starts_with(text, p, end, b"#BEGIN_TB"):
        if state[INSIDE]:
            return NESTED
        state[INSIDE], state[WARP], state[LEFT] = 1, -1, 0
        return MORE
    if starts_with(text, p, end, b"#END_TB"):
        if not state[INSIDE]:
            return OUTSIDE
        if state[LEFT] > 0:
            return TOO_FEW
        state[INSIDE] = 0
        return CTA_END
    return BAD_DIRECTIVE


@njit()
def _warp(text, p, end, facts, state, warp_start, warp_count):
    """Read ``warp = W`` or ``insts = N``; return a code."""
    value = read_assigned(text, p, end)
    if text[p] == 119:
        if state[LEFT] > 0:
            return TOO_FEW
        if value < 0 or value >= facts[N_WARPS]:
            return BAD_WARP
        if warp_count[value] >= 0:
            return REPEATED_WARP
        state[WARP] = value
        warp_start[value], warp_count[value] = state[INSTRUCTIONS], 0
        return MORE
    if state[WARP] < 0 or state[LEFT] > 0 or warp_count[state[WARP]] > 0 or value < 0 or value > MOST_INSTRUCTIONS:
        return BAD_COUNT
    warp_count[state[WARP]], state[LEFT] = value, value
    return MORE


@njit()
def _line(text, p, end, facts, state, index, columns, warp_start, warp_count):
    """Read one non-empty line; return a code."""
    if text[p] == 35:
        return _directive(text, p, end, state)
    if not state[INSIDE]:
        return OUTSIDE
    if starts_with(text, p, end, b"thread"):
        return MORE  # CTAs are numbered by their order in the file
    if starts_with(text, p, end, b"warp") or starts_with(text, p, end, b"insts"):
        return _warp(text, p, end, facts, state, warp_start, warp_count)
    if state[LEFT] <= 0:
        return TOO_MANY
    i = state[INSTRUCTIONS]
    if i >= columns.pc.size or state[ADDRESSES] + 32 > columns.address.size:
        return GROW
    return _instruction(text, p, end, facts, state, index, columns)


@njit()
def scan(text, start, end, facts, state, index, columns, warp_start, warp_count):
    """Read whole lines of text[start:end]; return (code, position of the first line not read)."""
    p = start
    while p < end:
        line_end = p
        while line_end < end and text[line_end] != 10:
            line_end += 1
        stop = line_end
        while stop > p and (text[stop - 1] == 13 or is_blank(text[stop - 1])):
            stop -= 1
        first = skip_blanks(text, p, stop)
        code = MORE
        if first < stop:
            code = _line(text, first, stop, facts, state, index, columns, warp_start, warp_count)
        if code in (GROW, NEW_OPCODE):
            return code, p
        state[LINE] += 1
        p = line_end + 1
        if code != MORE:
            return code, min(p, end)
    return MORE, min(p, end)
