"""Launch latency: AMALI Eq. (27) and (28), by block size and by launch."""

import pytest

from dse.timing.launch import LaunchLatency
from dse.workload.kernel import Interval, Kernel


def kernel(**fields):
    """A kernel of a given grid."""
    return Kernel(Interval(), Interval(), Interval(), **fields)


@pytest.mark.parametrize(
    ("warps", "negative", "printed"),
    [(1, 1.156, 1.229), (4, 1.100, 1.393), (8, 1.127, 1.712), (16, 1.525, 2.696), (32, 3.704, 6.047)],
)
def test_cycles_a_cta_by_block_size(warps, negative, printed):
    for beta, expected in ((-0.0366, negative), (0.0366, printed)):
        found = LaunchLatency(beta=beta).per_grid(kernel(warps=warps, ctas=1))
        assert float(found) == pytest.approx(expected, abs=6e-4)


def test_the_grid_is_linear_and_the_constant_counts_launches():
    launch = LaunchLatency()
    assert float(launch.per_grid(kernel(warps=8, ctas=2048))) == pytest.approx(
        2048 * (0.0036 * 64 - 0.0366 * 8 + 1.1891)
    )
    assert float(launch.per_launch(kernel(launches=1))) == 2200
    assert float(launch.per_launch(kernel(launches=2))) == 4400


def test_no_block_size_launches_in_less_than_no_time():
    assert all(float(LaunchLatency().per_grid(kernel(warps=warps, ctas=1))) > 1 for warps in range(1, 33))
