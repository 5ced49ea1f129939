"""Readers of the tokens of a trace's line: what they take, where they stop, and what they refuse."""

import numpy as np
import pytest

from dse.traces.trace_tokens import (
    delta_addresses,
    list_addresses,
    read_assigned,
    read_decimal,
    read_hex,
    read_registers,
    stride_addresses,
)


def text(line: str) -> np.ndarray:
    return np.frombuffer(line.encode(), np.uint8)


@pytest.mark.parametrize(
    ("line", "value", "after"),
    [("7f", 0x7F, 2), ("  0x7F rest", 0x7F, 6), ("0", 0, 1), ("ffffffffffffffff", 2**64 - 1, 16), ("0xabc", 0xABC, 5)],
)
def test_hexadecimal_numbers(line: str, value: int, after: int) -> None:
    found, place = read_hex(text(line), 0, len(line))
    assert (int(found), place) == (value, after)


@pytest.mark.parametrize("line", ["", "   ", "0x", "12g", "-1", "1ffffffffffffffff"])
def test_what_is_no_hexadecimal_number_of_64_bits(line: str) -> None:
    assert read_hex(text(line), 0, len(line))[1] == -1


@pytest.mark.parametrize(
    ("line", "value", "after"), [("12 3", 12, 2), (" -4", -4, 3), ("999999999999999999", 10**18 - 1, 18), ("007", 7, 3)]
)
def test_decimal_numbers(line: str, value: int, after: int) -> None:
    assert read_decimal(text(line), 0, len(line)) == (value, after)


@pytest.mark.parametrize("line", ["", "-", "1.5", "a", "1000000000000000000", "0x1"])
def test_what_is_no_decimal_number_of_18_digits(line: str) -> None:
    assert read_decimal(text(line), 0, len(line))[1] == -1


@pytest.mark.parametrize(("line", "value"), [("warp = 7", 7), ("insts =  12 ", 12), ("warp 7", -1), ("warp = 7 8", -1)])
def test_an_assignment_holds_one_number(line: str, value: int) -> None:
    assert read_assigned(text(line), 0, len(line)) == value


@pytest.mark.parametrize(
    ("line", "registers"),
    [
        ("2 R4 R255", [4, 255]),
        ("0", []),
        ("3 R1 R2", None),
        ("1 P1", None),
        ("5 R1 R1 R1 R1 R1", None),
        ("1 R-1", None),
    ],
)
def test_registers_are_counted_first_and_at_most_as_many_as_there_is_room_for(line: str, registers) -> None:
    out = np.zeros((1, 4), np.int64)
    count, place = read_registers(text(line), 0, len(line), 4, out, 0)
    assert (place == -1) == (registers is None)
    assert registers is None or out[0, :count].tolist() == registers


def addresses(mode, line: str, mask: int) -> list[int] | None:
    """Return the addresses of the active lanes, None where the line holds none."""
    out = np.zeros(32, np.uint64)
    place = mode(text(line), 0, len(line), mask, out, 0)
    return None if place < 0 else out[: mask.bit_count()].tolist()


def test_a_list_has_an_address_for_each_active_lane() -> None:
    assert addresses(list_addresses, "0x10 0x30", 0b101) == [0x10, 0x30]
    assert addresses(list_addresses, "0x10", 0b101) is None


def test_a_stride_covers_the_first_run_of_lanes() -> None:
    assert addresses(stride_addresses, "0x100 8", 0b110110) == [0x100, 0x108, 0, 0]
    assert addresses(stride_addresses, "0x100 -4", 0b11) == [0x100, 0xFC]
    assert addresses(stride_addresses, "0x100", 0b1) is None
    assert addresses(stride_addresses, "0x100 4294967296", 0b1) is None


def test_differences_lead_from_lane_to_lane_and_one_too_many_is_let_pass() -> None:
    assert addresses(delta_addresses, "0x100 4 -8", 0b10101) == [0x100, 0x104, 0xFC]
    assert addresses(delta_addresses, "0x100 4 -8 12", 0b10101) == [0x100, 0x104, 0xFC]
    assert addresses(delta_addresses, "0x100 4", 0b10101) is None
