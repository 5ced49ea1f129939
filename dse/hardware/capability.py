"""Compute capabilities, by which instructions exist."""

ANY_NEWER = 99.0
"""A compute capability beyond all that there are."""
