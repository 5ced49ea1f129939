"""Compiled readers of the tokens of a trace's line: numbers, registers and the three address modes.

Each takes the text with a range of positions and returns the position after what it read, -1 where it cannot read it.
"""

import numpy as np

from dse.base.compiled_loops import njit


@njit()
def is_blank(c):
    """Whether a byte is a space or a tab."""
    return c == 32 or c == 9


@njit()
def skip_blanks(text, p, end):
    """Return the first place from ``p`` on that is not blank."""
    while p < end and is_blank(text[p]):
        p += 1
    return p


@njit()
def token_end(text, p, end):
    """Return the first place from ``p`` on that is blank: the end of a token."""
    while p < end and not is_blank(text[p]):
        p += 1
    return p


@njit()
def read_hex(text, p, end):
    """Read a hexadecimal token; return (value, position after it, or -1 where it is none)."""
    p = skip_blanks(text, p, end)
    if p + 2 < end and text[p] == 48 and (text[p + 1] == 120 or text[p + 1] == 88):
        p += 2
    value, digits = np.uint64(0), 0
    while p < end and not is_blank(text[p]):
        c = text[p]
        if 48 <= c <= 57:
            d = c - 48
        elif 97 <= c <= 102:
            d = c - 87
        elif 65 <= c <= 70:
            d = c - 55
        else:
            return value, -1
        if value >> np.uint64(60) != 0:
            return value, -1
        value = (value << np.uint64(4)) | np.uint64(d)
        digits += 1
        p += 1
    return value, p if digits > 0 else -1


@njit()
def read_decimal(text, p, end):
    """Read a decimal token of at most 18 digits; return (value, position after it, or -1 where it is none)."""
    p = skip_blanks(text, p, end)
    negative = p < end and text[p] == 45
    p += negative
    value, digits = 0, 0
    while p < end and not is_blank(text[p]):
        c = text[p]
        if c < 48 or c > 57 or digits == 18:
            return 0, -1
        value = value * 10 + (c - 48)
        digits += 1
        p += 1
    return -value if negative else value, p if digits > 0 else -1


@njit()
def read_assigned(text, p, end):
    """Read the number of ``word = number``; return (number, or -1 where there is none)."""
    p = skip_blanks(text, token_end(text, p, end), end)
    if p >= end or text[p] != 61:
        return -1
    value, p = read_decimal(text, p + 1, end)
    return value if p >= 0 and skip_blanks(text, p, end) == end else -1


@njit()
def read_registers(text, p, end, most, out, row):
    """Read a count and as many registers ``R<number>``; return (count, position after them or -1)."""
    count, p = read_decimal(text, p, end)
    if p < 0 or count < 0 or count > most:
        return 0, -1
    for i in range(count):
        p = skip_blanks(text, p, end)
        if p >= end or text[p] != 82:
            return 0, -1
        value, p = read_decimal(text, p + 1, end)
        if p < 0 or value < 0 or value > 32767:
            return 0, -1
        out[row, i] = value
    return count, p


@njit()
def starts_with(text, p, end, word):
    """Whether the bytes of ``word`` stand at ``p``."""
    same = end - p >= len(word)
    i = 0
    while same and i < len(word):
        same = text[p + i] == word[i]
        i += 1
    return same


@njit()
def list_addresses(text, p, end, mask, out, at):
    """Mode 0: one hexadecimal address per active lane."""
    for lane in range(32):
        if (mask >> lane) & 1:
            value, p = read_hex(text, p, end)
            if p < 0:
                return -1
            out[at] = value
            at += 1
    return p


@njit()
def stride_addresses(text, p, end, mask, out, at):
    """Mode 1: base and stride over the first contiguous run of active lanes; later ones keep address 0."""
    base, p = read_hex(text, p, end)
    if p < 0:
        return -1
    stride, p = read_decimal(text, p, end)
    if p < 0 or stride > 2147483647 or stride < -2147483648:
        return -1
    in_run, ended = False, False
    for lane in range(32):
        if (mask >> lane) & 1:
            out[at] = np.uint64(0) if ended else base
            base = base + np.uint64(stride)
            in_run = True
            at += 1
        elif in_run:
            ended = True
    return p


@njit()
def delta_addresses(text, p, end, mask, out, at):
    """Mode 2: base, then one difference per further active lane; one difference too many is let pass."""
    value, p = read_hex(text, p, end)
    if p < 0:
        return -1
    first = True
    for lane in range(32):
        if (mask >> lane) & 1:
            if not first:
                delta, p = read_decimal(text, p, end)
                if p < 0:
                    return -1
                value = value + np.uint64(delta)
            out[at] = value
            at += 1
            first = False
    if skip_blanks(text, p, end) < end:
        _, p = read_decimal(text, p, end)
    return p


@njit()
def population(mask):
    """Return how many lanes a mask holds."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
