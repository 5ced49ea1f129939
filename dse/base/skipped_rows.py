"""Rows of a table that an answer leaves out, counted by reason."""

from collections import Counter
from collections.abc import Iterable, Mapping

Skipped = Counter[str]
"""Reason -> rows. Sums are by ``update`` or ``+``: ``|`` keeps the larger of two counts."""


def counted(reasons: Iterable[object]) -> Skipped:
    """Return how many rows each reason leaves out, the most first; "" leaves none out."""
    return Counter(dict(Counter(str(reason) for reason in reasons if reason).most_common()))


def why_skipped(skipped: Mapping[str, int]) -> str:
    """Return reasons and counts as the end of a sentence, "" where there are none."""
    return "; ".join(f"{reason} ({count})" for reason, count in skipped.items())


def lines(skipped: Mapping[str, int]) -> list[str]:
    """Return a line for each reason."""
    return [f"skipped: {count} {'row' if count == 1 else 'rows'}: {reason}" for reason, count in skipped.items()]
