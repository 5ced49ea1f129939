"""The record of a kernel's time: causes that add up, and what every model has without saying so."""

from dataclasses import fields
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.base.numerics import INFEASIBLE
from dse.hardware.presets import load_gpu
from dse.timing.roofline import Roofline
from dse.timing.timing import CAUSES, PHASE_CAUSES, Timing, TimingModel, causes_of, expect_records
from dse.timing.traced.models import on_trace
from dse.workload.kernel import Interval, Kernel
from dse.workload.serving_engine import Host
from dse.workload.workload import Phase, Workload

KERNEL = Kernel(Interval(), Interval(), Interval())


def timing(clock_ghz: float = 2.0, **numbers: float) -> Timing:
    """Return a timing of so many cycles by cause, 0 of those that are not named."""
    values = dict.fromkeys(CAUSES, 0.0) | {"clock_ghz": clock_ghz, "feasible": 1.0, "dram_bytes": 0.0} | numbers
    return Timing(**{name: jnp.asarray(value, float) for name, value in values.items()})


class Fixed(TimingModel):
    """Takes as long whatever the kernel and the GPU."""

    answer: Timing

    def __call__(self, kernel: Any, gpu: Any) -> Timing:
        return self.answer


def test_the_causes_are_the_fields_and_add_up() -> None:
    assert set(CAUSES) <= {field.name for field in fields(Timing)}
    one = timing(selected=100.0, wait=20.0, launch=3.0)
    assert list(one.stack()) == list(CAUSES)
    assert float(one.cycles) == 123.0


def test_time_is_cycles_over_the_clock() -> None:
    one = timing(clock_ghz=2.0, selected=3000.0)
    assert float(one.nanoseconds) == 1500.0
    assert float(one.microseconds) == 1.5


def test_a_stretched_stack_keeps_its_shares_clock_and_bytes() -> None:
    one = timing(selected=100.0, dram_bandwidth=50.0, hidden=10.0, exposed=5.0, dram_bytes=7.0)
    longer = one.stretched(3.0)
    assert float(longer.cycles) == 450.0
    assert float(longer.dram_bandwidth / longer.cycles) == pytest.approx(1 / 3)
    assert (float(longer.hidden), float(longer.exposed)) == (30.0, 15.0)
    assert (float(longer.clock_ghz), float(longer.dram_bytes)) == (2.0, 7.0)


def test_what_cannot_run_is_slower_than_anything() -> None:
    gpu = load_gpu("h100_sxm")
    assert float(Fixed(timing(selected=3000.0)).nanoseconds(KERNEL, gpu)) == 1500.0
    assert float(Fixed(timing(selected=3000.0, feasible=0.0)).nanoseconds(KERNEL, gpu)) == np.float32(INFEASIBLE)


def test_only_a_workload_that_waits_for_a_host_has_its_cause() -> None:
    alone = Workload("w", "", (), (Phase("decode"),))
    assert causes_of(alone) == CAUSES
    assert causes_of(Workload("w", "", (), (Phase("decode", host=Host(waits_us=1.0)),))) == PHASE_CAUSES


def test_a_model_without_a_calibration_says_nothing_of_its_error() -> None:
    model = Fixed(timing())
    assert model.calibration == "uncalibrated"
    assert model.error_interval is None
    assert model.library.name == "representative"
    with pytest.raises(InputError, match="fixed does not time traces"):
        on_trace(model, type("Trace", (), {"name": "k"})(), load_gpu("h100_sxm"))  # pyright: ignore[reportArgumentType]


def test_a_model_is_called_with_records() -> None:
    expect_records(KERNEL, load_gpu("h100_sxm"))
    with pytest.raises(InputError, match=r"dse\.run times a workload"):
        expect_records("llama3_8b", load_gpu("h100_sxm"))
    with pytest.raises(InputError, match="give a record, as load_gpu"):
        Roofline()(KERNEL, "h100_sxm")  # pyright: ignore[reportArgumentType]
