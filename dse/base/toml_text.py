"""Values as TOML writes them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any


def literal(value: Any, digits: int | None = None) -> str:
    """Return a text, switch, number or list as TOML; floats with ``digits`` significant digits, None: all of them."""
    value = value.item() if hasattr(value, "item") else value  # NumPy's scalars
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's string, but for the control character that it lets pass; it would split others into surrogates.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(literal(one, digits) for one in value) + "]"
    return f"{value:.{digits}g}" if isinstance(value, float) and digits else repr(value)


def pairs(values: Mapping[str, Any], digits: int | None = None, without: Iterable[str] = ()) -> list[str]:
    """Return the lines of a table's keys, those of None and ``without`` left out."""
    left_out = set(without)
    return [
        f"{key} = {literal(value, digits)}"
        for key, value in values.items()
        if value is not None and key not in left_out
    ]


def inline(values: Mapping[str, Any], digits: int | None = None) -> str:
    """Return an inline table."""
    return "{ " + ", ".join(pairs(values, digits)) + " }"
