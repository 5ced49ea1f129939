"""Shapes of records and of calls of models, where they are checked: `test_shapes.py` runs these tests."""

from dataclasses import fields

import jax.numpy as jnp
import pytest

from dse.hardware.presets import load_gpu
from dse.power.power import COMPONENTS, Power
from dse.timing.timing import CAUSES, Timing, TimingModel
from dse.workload.kernel import Interval, Kernel


def timing(**changed):
    values = dict.fromkeys(CAUSES, jnp.zeros(())) | {"clock_ghz": jnp.ones(()), "feasible": jnp.ones(())}
    return Timing(**values, dram_bytes=jnp.zeros(()), **changed)


def test_fields_of_a_record_broadcast_together():
    whole = dict.fromkeys([f.name for f in fields(Timing)], jnp.ones((3, 2)))
    assert Timing(**whole | {"wait": jnp.ones(2)}).cycles.shape == (3, 2)
    with pytest.raises(TypeError, match="wait"):
        Timing(**whole | {"wait": jnp.ones(4)})


def test_a_record_takes_numbers():
    with pytest.raises(TypeError, match="hidden"):
        timing(hidden="none of it")
    with pytest.raises(TypeError, match="dram"):
        Power(**dict.fromkeys(COMPONENTS, jnp.ones(())) | {"dram": [1.0]})


class Twice(TimingModel):
    """A model that times two kernels at once."""

    def __call__(self, kernel, gpu):
        return Timing(**dict.fromkeys([f.name for f in fields(Timing)], jnp.ones(2)))


def test_a_model_returns_the_time_of_one_kernel():
    kernel, gpu = Kernel(Interval(), Interval(), Interval()), load_gpu("h100_sxm")
    with pytest.raises(TypeError, match="nanoseconds"):
        Twice().nanoseconds(kernel, gpu)
