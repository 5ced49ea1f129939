"""Microbenchmarks: rings of pointers, and grids of CTAs that do nothing, as a measured table names them."""

CHASE, GRID = "pointer_chase", "empty_grid"
"""Operators: ``rows`` lines of ``cols`` words that are chased through, ``rows`` CTAs of ``cols`` threads that do
nothing."""

LINE = 32
"""Words of a line [4 B]: each hop reads another line."""

LEAST_HOPS = 2**16
"""Hops of a launch at least, so that a small ring is passed many times and its first pass does not count."""


def hops(lines: int) -> int:
    """Return the hops of a launch: every line of the ring at least once."""
    return max(lines, LEAST_HOPS)
