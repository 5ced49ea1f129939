"""The word for whether a board throttles, by its clock at both ends of what is known of its watts."""

from dse.power.throttles import NO, OPEN, THROTTLED, YES, throttles


def test_a_board_throttles_at_both_ends_of_its_watts_at_none_or_at_one() -> None:
    assert list(throttles([1.0, 1.0, 0.9], [1.0, 0.8, 0.6])) == [NO, OPEN, YES]


def test_a_clock_that_is_hardly_lower_is_not_told_from_the_one_asked_for() -> None:
    assert throttles(1.0, THROTTLED + 1e-3) == NO
    assert throttles(1.0, THROTTLED - 1e-3) == OPEN
