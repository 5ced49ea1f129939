"""Random changes of a text that people make by accident and programs by habit: spans, values, types and encodings."""

import random
import re

CHARACTERS = "[]{}()=\"'`,.:;#\\\n\r\t\0 \x1b-+*/<>%_eE0123456789xnaif\u00e9\u00b5\ufeff\u2028\U0001f600"
VALUES = (
    "0", "-1", "1.5", "8.0", "nan", "inf", "-inf", "1e308", "1e-308", "1e400", "9" * 30, "9" * 5000, "true", "false",
    '""', '"x"', "[]", "[1]", '["min"]', "{}", "{ a = 1 }", '{"a": 1}', "null", "NaN", "[[[[]]]]", "1979-05-27",
    "59,07", "1.234,5", "0x10", "1_000", "'", '"""', "-" * 400 + "1", "1+" * 400 + "1", "(" * 300, "[" * 3000,
)  # fmt: skip
"""What may stand in a value's place."""

ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1")


def mutated(text: str, draw: random.Random) -> bytes:
    """Return a text with one to four changes, in some encoding."""
    for _ in range(draw.randint(1, 4)):
        text = draw.choice(CHANGES)(text, draw)
    return text.encode(draw.choice(ENCODINGS), "replace")


def _cut(text: str, draw: random.Random) -> str:
    a, b = _span(text, draw)
    return text[:a] + text[b:]


def _twice(text: str, draw: random.Random) -> str:
    a, b = _span(text, draw)
    return text[:b] + text[a:b] * draw.randint(1, 3) + text[b:]


def _character(text: str, draw: random.Random) -> str:
    a = draw.randint(0, len(text))
    return text[:a] + draw.choice(CHARACTERS) * draw.choice((1, 1, 1, 3)) + text[a + draw.randint(0, 1) :]


def _value(text: str, draw: random.Random) -> str:
    """Another value in the place of a number, a quoted text or a word."""
    found = list(re.finditer(r'"[^"\n]*"|[-+]?[\d.]+|\w+', text))
    if not found:
        return draw.choice(VALUES)
    one = draw.choice(found)
    return text[: one.start()] + draw.choice(VALUES) + text[one.end() :]


def _swapped(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _words(text: str, draw: random.Random) -> str:
    """One word of the text in the place of another."""
    found = list(re.finditer(r"\w+", text))
    if len(found) < 2:
        return text
    one, other = draw.choice(found), draw.choice(found)
    return text[: one.start()] + other.group() + text[one.end() :]


def _span(text: str, draw: random.Random) -> tuple[int, int]:
    a = draw.randint(0, len(text))
    return a, min(len(text), a + draw.choice((1, 3, 10, 40)))


CHANGES = (_cut, _twice, _character, _character, _value, _value, _value, _swapped, _words)
