"""Rows that are left out, counted by reason."""

from dse.base.skipped_rows import Skipped, counted, lines, why_skipped


def test_reasons_are_counted_the_most_first_and_no_reason_is_none() -> None:
    found = counted(["no GPU", "", "no kernel", None, "no kernel"])
    assert list(found.items()) == [("no kernel", 2), ("no GPU", 1)]


def test_sums_keep_every_row() -> None:
    total = counted(["no GPU"]) + Skipped({"no GPU": 2, "no kernel": 1})
    assert total == {"no GPU": 3, "no kernel": 1}


def test_a_sentence_ends_with_the_reasons() -> None:
    assert why_skipped({"no kernel": 2, "no GPU": 1}) == "no kernel (2); no GPU (1)"
    assert why_skipped({}) == ""


def test_one_row_is_no_rows() -> None:
    assert lines({"no kernel": 2, "no GPU": 1}) == ["skipped: 2 rows: no kernel", "skipped: 1 row: no GPU"]
    assert lines({}) == []
