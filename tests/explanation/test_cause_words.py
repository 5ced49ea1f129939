"""Causes in plain words, their own names beside them where these say something else."""

from dse.explanation.cause_words import CAUSE_WORDS, cause_text, held_by, meaning


def test_names_stand_in_brackets_where_words_differ() -> None:
    assert cause_text("dram_bandwidth") == "DRAM bandwidth"
    assert cause_text("long_scoreboard") == "memory latency (long_scoreboard)"
    assert len(set(map(cause_text, CAUSE_WORDS))) == len(CAUSE_WORDS)


def test_the_larger_half_of_a_stack_is_told_the_largest_first() -> None:
    assert held_by({"launch": 1.0, "dram_bandwidth": 9.0}) == "90 % for DRAM bandwidth"
    stack = {"launch": 3.0, "l2_bandwidth": 4.0, "dram_bandwidth": 3.0}
    assert held_by(stack) == "40 % for L2 bandwidth and 30 % for kernel launches"


def test_a_meaning_begins_with_the_own_name_where_words_differ() -> None:
    assert meaning("long_scoreboard").startswith("long_scoreboard: ")
    assert meaning("dram_bandwidth").startswith("DRAM's bytes")
