"""Counts as settings and tables state them, refused with what they mean where they are none."""

from dse.base.errors import InputError

LARGEST = 10_000_000
"""Largest dimension, batch or count that a workload may state."""


def positive(text: str, shown: str, meaning: str) -> int:
    """Return ``text`` as a count from 1 to LARGEST; ``shown`` opens the sentence of a refusal. Raises InputError."""
    try:
        plain = text.isascii() and "_" not in text and len(text) < 20  # int() takes more than plain digits
        value = int(text) if plain else 0
    except ValueError:
        value = 0
    if not 1 <= value <= LARGEST:
        raise InputError(f"{shown} is not accepted; give a whole number from 1 to {LARGEST} ({meaning})")
    return value
