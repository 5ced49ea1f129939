"""How many CTAs fit, and in which waves a grid runs, by hand."""

import jax.numpy as jnp
import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.occupancy import UNLIMITED, ctas_per_sm, waves
from dse.workload.kernel import Interval, Kernel

A100 = preset_sheet("a100_sxm_80gb").numbers()


def kernel(**fields):
    """A kernel of given resources."""
    return Kernel(Interval(), Interval(repeats=1, instructions=1), Interval(), **fields).as_arrays()


@pytest.mark.parametrize(
    ("fields", "fit"),
    [
        ({"warps": 8, "registers": 32}, 8),  # 2048 threads of 256
        ({"warps": 1, "registers": 32}, 32),  # CTA slots
        ({"warps": 8, "registers": 128}, 2),  # 65536 registers of 256 x 128
        ({"warps": 8, "registers": 125}, 2),  # rounded up to 128
        ({"warps": 4, "registers": 32, "shared_kib": 40}, 4),  # 164 KiB of 40 + 1 reserved
        ({"warps": 4, "registers": 32, "shared_kib": 40.1}, 3),  # rounded up to an eighth of a KiB
        ({"warps": 4, "registers": 32, "shared_kib": 163}, 1),
        ({"warps": 4, "registers": 32, "shared_kib": 164}, 0),
        ({"warps": 128, "registers": 32}, 0),
    ],
)
def test_the_scarcest_resource_limits_the_ctas_of_an_sm(fields, fit):
    assert float(ctas_per_sm(kernel(**fields), Gpu.from_numbers(A100))) == fit


def test_nothing_is_infinite_where_shared_memory_is_not_used():
    free = A100 | {"shared_reserved_kib": 0.0, "ctas_per_sm": 64.0}
    assert float(ctas_per_sm(kernel(warps=1, registers=1), Gpu.from_numbers(free))) == 64
    assert jnp.isfinite(UNLIMITED)


@pytest.mark.parametrize(
    ("ctas", "full", "resident", "rest", "full_ctas", "rest_ctas"),
    [
        (1, 1, 1, 0, 1, 0),
        (108, 1, 1, 0, 108, 0),
        (109, 1, 2, 0, 109, 0),
        (216, 1, 2, 0, 216, 0),
        (217, 1, 2, 1, 216, 1),
        (433, 2, 2, 1, 216, 1),
        (400, 2, 2, 0, 200, 0),  # the holes of the last wave are shared out
    ],
)
def test_waves_of_a_grid_on_108_sms_that_hold_two_ctas(ctas, full, resident, rest, full_ctas, rest_ctas):
    found = waves(kernel(ctas=ctas, warps=8, registers=128), Gpu.from_numbers(A100))
    assert tuple(map(float, found)) == (full, resident, rest, full_ctas, rest_ctas, 1)


@pytest.mark.parametrize("ctas", [1, 107, 108, 500, 12345, 2**23 - 1])
def test_the_waves_hold_the_grid_exactly(ctas):
    found = waves(kernel(ctas=ctas, warps=8, registers=128), Gpu.from_numbers(A100))
    assert float(found.full * found.full_ctas + found.rest_ctas) == pytest.approx(ctas, rel=1e-6)


def test_a_cta_that_does_not_fit_is_told_and_counted_as_if_one_did():
    found = waves(kernel(ctas=10, warps=128), Gpu.from_numbers(A100))
    assert (float(found.fits), float(found.resident)) == (0, 1)
