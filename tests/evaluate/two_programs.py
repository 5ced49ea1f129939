"""Results of two programs that round apart, held to each other: to 1e-6 of each, or of the time it is a part of."""

from collections.abc import Mapping

import numpy as np

from tests.grid.fronts import TIE

LEFT_OVER = ("dram_bandwidth", "mio_throttle")
"""Causes that are what bytes and queues take longer than the work in whose shadow they run: a small difference of large
numbers, whose roundings stay as large as these are. Every other cause is held to 1e-6 of itself."""


def assert_close(name: str, found: np.ndarray, expected: np.ndarray, total: np.ndarray | float = 0.0) -> None:
    """Assert that two programs give a result alike; ``total``: the time that a left-over part is one of, (designs,)."""
    off, most = np.abs(found - expected), TIE * np.maximum(np.abs(expected), total)
    close = (off <= most) | (np.isnan(found) & np.isnan(expected))
    assert close.all(), (
        f"{name}: {np.mean(~close):.2%} differ, at most by {np.nanmax(off / most):.3g} times what may be"
    )


def assert_alike(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Assert that result columns of two programs, by name, are alike."""
    assert set(found) == set(expected)
    for name, values in expected.items():
        workload, _, part = name.rpartition(".")
        total = expected[f"{workload}.time_ms"] if part.removesuffix("_ms") in LEFT_OVER else 0.0
        assert_close(name, found[name], values, total)
