"""The JSON document of an explanation with every list cut to its largest entries."""

from collections.abc import Callable
from itertools import compress
from typing import Any

import pandas as pd

from dse.base.errors import InputError

Row = dict[str, Any]


def check_top(most: int | None) -> None:
    """Raise InputError where the number of entries to report is below 1."""
    if most is not None and most < 1:
        raise InputError(f"--top {most}: give 1 or more, or leave it out for everything")


def heaviest(times: pd.Series, most: int | None) -> pd.Series:
    """Return which kernels are among the ``most`` that take longest, in their order (all where it is None)."""
    return times.rank(method="first", ascending=False) <= (len(times) if most is None else most)


def shortened(document: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the JSON document of ``dse explain`` with the ``most`` entries of each list that matter most.

    Attributes by what they change, in the order of the document (elasticities: of each metric, in that of a kernel);
    kernels of a phase by their time; causes of a phase by their time, the others summed as ``rest``; assumed numbers by
    what they change. ``cut`` says how many entries each list lost.
    """
    if "first" in document:
        return _shortened_pair(document, most)
    longest = _most(document["kernels"], most, "phase", "time_ms")
    operators = {operator for operator, keep in enumerate(longest) if keep}
    slopes = [row for row in document["kernel_elasticities"] if row["operator"] in operators]
    lists = {
        "sentences": document["sentences"][:most],
        "kernels": list(compress(document["kernels"], longest)),
        "moves": _first(document["moves"], most, lambda row: row["metric"]),
        "elasticities": _first(document["elasticities"], most, lambda row: row["metric"]),
        "kernel_elasticities": _first(slopes, most, lambda row: row["operator"]),
        "roofline": [row for row in document["roofline"] if row["operator"] in operators or row["operator"] < 0],
    }
    assumed = document["assumed_numbers"]
    few = {name: assumed[name][:most] for name in ("deciding", "varied")}
    lost = {"assumed_numbers": n} if (n := len(assumed["varied"]) - len(few["varied"])) else {}
    stacks = {phase: _causes(stack, most) for phase, stack in document["stack_ms"].items()}
    cut = {"cut": _lost(document, lists) | lost}
    return document | lists | {"assumed_numbers": assumed | few, "stack_ms": stacks} | cut


def _shortened_pair(document: dict[str, Any], most: int) -> dict[str, Any]:
    """The document of two designs: kernels and causes by the longer of their two times."""
    lists = {
        "sentences": document["sentences"][: 1 + most],  # the first is on the two designs themselves
        "stack": _longest(document["stack"], most),
        "kernels": _longest(document["kernels"], most),
        "swaps": _first(document["swaps"], most, lambda row: row["metric"]),
    }
    sides = {side: shortened(document[side], most) for side in ("first", "second")}
    return document | lists | sides | {"cut": _lost(document, lists)}


def _longest(rows: list[Row], most: int) -> list[Row]:
    """The causes or kernels of each phase that take longest on either of two designs, in their order."""
    longer = [row | {"ms": max(row["first_ms"], row["second_ms"])} for row in rows]
    return list(compress(rows, _most(longer, most, "phase", "ms")))


def _most(rows: list[Row], most: int, group: str, by: str) -> list[bool]:
    """Return which rows are among the ``most`` largest of their group."""
    frame = pd.DataFrame({"group": [row[group] for row in rows], "by": [row[by] for row in rows]})
    return frame.groupby("group", sort=False)["by"].transform(lambda part: heaviest(part, most)).astype(bool).tolist()


def _first(rows: list[Row], most: int, group: Callable[[Row], Any]) -> list[Row]:
    """Return the first ``most`` rows of each group."""
    counts: dict[Any, int] = {}
    firsts = []
    for row in rows:
        counts[group(row)] = counts.get(group(row), 0) + 1
        if counts[group(row)] <= most:
            firsts.append(row)
    return firsts


def _causes(stack: dict[str, float], most: int) -> dict[str, float]:
    """A stack's largest causes, and the others together, so that it still adds up."""
    order = sorted(stack, key=lambda cause: -stack[cause])
    rest = sum(stack[cause] for cause in order[most:])
    return {cause: stack[cause] for cause in order[:most]} | ({"rest": rest} if order[most:] else {})


def _lost(document: dict[str, Any], lists: dict[str, list[Any]]) -> dict[str, int]:
    return {name: len(document[name]) - len(short) for name, short in lists.items() if len(document[name]) > len(short)}
