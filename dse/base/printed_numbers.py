"""Numbers as programs print them: with a decimal point or comma, and thousands apart, by the locale they ran in."""

import re
from collections.abc import Iterable

APART = str.maketrans("", "", " \u00a0\u202f\u2009'\u2019_")
"""What stands between thousands beside points and commas."""

COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,}|\d{3}e.*)|[-+]?\d{1,3}(\.\d{3}){2,}|[-+]?0,\d+|"
                   r"[-+]?\d{1,3}(\.\d{3})+,\d+|[-+]?\d{4,},\d+", re.IGNORECASE)  # fmt: skip
POINT = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)\.(\d{1,2}|\d{4,}|\d{3}e.*)|[-+]?\d{1,3}(,\d{3}){2,}|[-+]?0\.\d+|"
                   r"[-+]?\d{1,3}(,\d{3})+\.\d+|[-+]?\d{4,}\.\d+", re.IGNORECASE)  # fmt: skip
"""Numbers that can be read in one way: with a decimal comma, and with a decimal point."""


def decimal_comma(texts: Iterable[str], others: Iterable[str] = ()) -> bool | None:
    """Return whether a column's numbers have a decimal comma; None where some have a comma and others a point.

    Where each could be read in both ways (1,234), ``others`` of the same file decide, else the point.
    """
    for cells in (texts, others):
        comma, point = (_any(pattern, cells) for pattern in (COMMA, POINT))
        if comma and point and cells is texts:
            return None
        if comma != point:
            return comma
    return False


def _any(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    return any(pattern.fullmatch(text.translate(APART)) for text in texts)


def printed_number(text: str, comma: bool) -> float:
    """Return the number that a program printed; raises ValueError where it is none."""
    bare = text.strip().translate(APART)
    thousands, point = (".", ",") if comma else (",", ".")
    whole, _, _ = bare.partition(point)
    if thousands in whole and not re.fullmatch(rf"[-+]?\d{{1,3}}(\{thousands}\d{{3}})+", whole):
        raise ValueError(f"{text!r} is no number")
    return float(whole.replace(thousands, "") + bare[len(whole) :].replace(point, ".", 1))
