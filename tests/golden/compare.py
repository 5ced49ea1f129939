"""Compares an answer with the expected one: numbers within a tolerance, fronts apart from ties."""

import re
from collections.abc import Iterator
from math import isclose
from typing import Any

TIE = 4e-6
"""Relative difference of two designs that tie, of which a front may hold either."""

ZERO = 1e-9
"""Difference of two numbers that are both zero."""

WHOLE = {
    "change": 1.0,
    "promised": 1.0,
    "elasticity": 1.0,
    "log_ratio": 1.0,
    "share": 1.0,
    "data_share": 1.0,
    "mape": 100.0,
}
"""Key of a small difference of large numbers, or of a share -> what its tolerance is relative to: 1, or 100 percent.

Programs that fuse differently move them by up to 5e-7 and 1e-5 percent.
"""

FOUR_DIGITS, LAST_DIGIT = re.compile(r"\.assumed_numbers\b.*\.elasticities$"), 1.001e-3
"""Keys of numbers that are told with four digits, and one in the last of them [1], by which processors differ."""

NAMES = ("phase", "operator", "kernel", "attribute", "metric", "name", "op", "dtype", "device", "regime")
NAMES += ("predictor", "mode", "reason", "gpu", "network")
"""Keys by which the records of a list are told apart, so that their order may change."""

RANKED = {"kernel_elasticities": "time"}
"""List that holds the largest of its kind -> key that it is ranked by: of records that tie, it may hold any."""

NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")


def differences(expected: Any, got: Any, tolerance: float) -> list[str]:
    """Return a line for each difference: key, what is expected, what the answer is."""
    return list(_compared(expected, got, "", tolerance))


def _compared(a: Any, b: Any, key: str, tolerance: float, whole: float = 0.0) -> Iterator[str]:
    """Differences under a key; ``whole`` is what a number is a part of, by which its tolerance is widened."""
    if key == ".front":
        yield from _fronts(a, b, key, tolerance)
    elif isinstance(a, dict) and isinstance(b, dict):
        parts = [abs(value) for value in a.values() if ".stack" in key and _is_number(value)]
        for name in [*a, *(name for name in b if name not in a)]:
            if name in a and name in b:
                whole = WHOLE.get(name, max(parts, default=0.0))
                held = LAST_DIGIT if FOUR_DIGITS.search(f"{key}.{name}") else tolerance
                yield from _compared(a[name], b[name], f"{key}.{name}", held, whole)
            else:
                yield f"{key}.{name}: {'is missing' if name in a else 'was not there'}"
    elif isinstance(a, list) and isinstance(b, list):
        yield from _lists(a, b, key, tolerance)
    elif not _same(a, b, tolerance, whole):
        yield f"{key}: expected {a!r}, got {b!r}"


def _lists(a: list[Any], b: list[Any], key: str, tolerance: float) -> Iterator[str]:
    named, other = _by_name(a), _by_name(b)
    if named and other:
        ranked = RANKED.get(key.rpartition(".")[2])
        for name in [name for name in named if ranked and name not in other]:
            rivals = (n for n in other if n not in named and _ties(named[name][ranked], other[n][ranked]))
            if (rival := next(rivals, None)) is not None:
                del named[name], other[rival]
        yield from _compared(named, other, key, tolerance)
    elif len(a) != len(b):
        yield f"{key}: expected {len(a)} entries, got {len(b)}"
    else:
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _compared(x, y, f"{key}[{i}]", tolerance)


def _ties(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=TIE)


def _by_name(records: list[Any]) -> dict[str, Any] | None:
    """The records of a list by their names, or None where they have none of their own."""
    if not all(isinstance(record, dict) for record in records):
        return None
    names = [" ".join(str(record[key]) for key in NAMES if key in record) for record in records]
    return dict(zip(names, records, strict=True)) if all(names) and len(set(names)) == len(names) else None


def _same(a: Any, b: Any, tolerance: float, whole: float) -> bool:
    if isinstance(a, str) and isinstance(b, str) and " " in a:  # a sentence: its numbers are held, its words are not
        numbers, others = _numbers(a), _numbers(b)
        return len(numbers) == len(others) and all(map(_printed_same, numbers, others))
    if not (_is_number(a) and _is_number(b)):
        return a is b if isinstance(a, bool) or isinstance(b, bool) else a == b
    return isclose(a, b, rel_tol=tolerance, abs_tol=max(ZERO, tolerance * whole))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(text: str) -> list[str]:
    found = [n.rstrip(",").replace(",", "").replace("−", "-") for n in NUMBER.findall(text)]
    return sorted(found, key=float)


def _printed_same(a: str, b: str) -> bool:
    """Whether two printed numbers differ by one in the last of at least three digits, at most."""
    last = 10.0 ** -len(a.partition(".")[2]) if sum(map(str.isdigit, a)) > 2 else 0.0
    return abs(float(a) - float(b)) <= 1.001 * last


def _fronts(a: dict[str, Any], b: dict[str, Any], key: str, tolerance: float) -> Iterator[str]:
    """Two fronts are the same where each point of either ties with, or is dominated by, one of the other."""
    if a["objectives"] != b["objectives"]:
        yield f"{key}.objectives: expected {a['objectives']}, got {b['objectives']}"
        return
    for point in _uncovered(a["costs"], b["costs"]):
        yield f"{key}: {point} is no longer on the front"
    for point in _uncovered(b["costs"], a["costs"]):
        yield f"{key}: {point} is new on the front"
    for design in a["designs"].keys() & b["designs"].keys():  # a design that is not on both ties with another
        yield from _compared(a["designs"][design], b["designs"][design], f"{key}.{design}", tolerance)


def _uncovered(points: list[list[float]], others: list[list[float]]) -> list[list[float]]:
    def covers(other: list[float], point: list[float]) -> bool:
        return all(y <= x + TIE * abs(x) for x, y in zip(point, other, strict=True))

    return [point for point in points if not any(covers(other, point) for other in others)]
