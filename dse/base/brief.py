"""Short texts of records that hold much: what a reader looks for, and how much there is."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import equinox as eqx

if TYPE_CHECKING:
    import pandas as pd

MOST = 5
"""Sentences that are shown of a list."""


def brief(record: Any, values: Mapping[str, Any]) -> str:
    """Return ``Name(key=value, ...)`` of a record of arrays: scalars as numbers, others as equinox shows them (f32[8]).

    Never raises: inside a program the fields are traced, and a tree may hold anything in their place.
    """
    return f"{type(record).__name__}({', '.join(f'{key}={_value(value)}' for key, value in values.items())}, ...)"


def _value(value: Any) -> str:
    try:
        return f"{float(value):.6g}" if getattr(value, "ndim", 0) == 0 else eqx.tree_pformat(value)
    except (TypeError, ValueError, RuntimeError):  # traced, no number, or donated to a program
        return eqx.tree_pformat(value)


def block(record: Any, *lines: str) -> str:
    """Return ``Name(first line``, the others below it, indented, and ``)``."""
    text = "\n  ".join(lines)
    return f"{type(record).__name__}({text})"


def some_of(sentences: list[str]) -> list[str]:
    """Return the first sentences of a list, and how many more there are."""
    more = len(sentences) - MOST
    return [*sentences[:MOST], *([f"... {more} more of sentences()"] if more > 0 else [])]


def with_table(record: Any, table: "pd.DataFrame") -> str:
    """Return a record's short text and a table of it as HTML, cut as pandas' options say."""
    return f"<pre>{escape(repr(record))}</pre>{table._repr_html_() or ''}"


def count_of(number: int, noun: str) -> str:
    """Return a count with its noun: 1 note, 2 notes."""
    return f"{number} {noun}{'s' * (number != 1)}"
