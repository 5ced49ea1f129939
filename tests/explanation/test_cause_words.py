"""Causes in plain words, their own names beside them where these say something else."""

from dse.explanation.cause_words import CAUSE_WORDS, cause_text


def test_names_stand_in_brackets_where_words_differ() -> None:
    assert cause_text("dram_bandwidth") == "DRAM bandwidth"
    assert cause_text("long_scoreboard") == "memory latency (long_scoreboard)"
    assert len(set(map(cause_text, CAUSE_WORDS))) == len(CAUSE_WORDS)
