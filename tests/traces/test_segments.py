"""What a segment is: by hand; that it is right is the scoreboard's test."""

import numpy as np

from dse.traces.segments import COMPUTE, GLOBAL, NEVER, make_segments
from tests.traces.programs import random_program


def segments_of(instructions: list[tuple[int, list[int], int]]):
    """Segments of (destination, sources, row) triples; row 0 is global memory."""
    sources = np.zeros((len(instructions), 4), int)
    for i, (_, registers, _) in enumerate(instructions):
        sources[i, : len(registers)] = registers
    row = np.array([r for _, _, r in instructions])
    return make_segments(
        np.array([d for d, _, _ in instructions]),
        sources,
        np.array([len(s) for _, s, _ in instructions]),
        row,
        np.where(row == 0, GLOBAL, COMPUTE),
    )


def test_independent_instructions_are_one_segment() -> None:
    found = segments_of([(1, [9], 1), (2, [9], 1), (3, [9], 1)])
    assert found.length.tolist() == [3]
    assert (found.slot == NEVER).all()


def test_a_chain_is_a_segment_each() -> None:
    found = segments_of([(1, [], 1), (1, [1], 1), (1, [1], 1)])
    assert found.start.tolist() == [0, 1, 2]
    assert found.slots == 3  # ready for sure, scratch, and one time that is kept


def test_what_was_waited_for_stalls_nothing_again() -> None:
    found = segments_of([(1, [], 0), (2, [1], 1), (3, [1], 1), (4, [1, 1], 1)])
    assert found.length.tolist() == [1, 3]


def test_of_two_results_of_one_row_the_later_counts() -> None:
    found = segments_of([(1, [], 1), (2, [], 1), (3, [1, 2], 1)])
    assert (found.slot[1] != NEVER).sum() == 1
    assert found.offset[1].max() == -1


def test_a_ready_load_after_a_late_operand_is_kept_for_its_label() -> None:
    found = segments_of([(1, [], 0), (2, [1], 1), (3, [2, 1], 1)])
    assert found.cause[2].tolist() == [COMPUTE, GLOBAL]
    assert found.slot[2, 1] == NEVER


def test_sums_over_segments_keep_the_total() -> None:
    program = random_program(1)
    found = make_segments(*program)
    values = np.arange(2 * len(program.row), dtype=float).reshape(2, -1)
    assert np.array_equal(found.total(values).sum(axis=1), values.sum(axis=1))
    assert len(found.start) < len(program.row)
