"""The error over each parameter: nothing at the truth, more the farther a parameter that the rows show is from it."""

import numpy as np
import pytest
from rich.console import Console

from dse.calibration.timing.fit import Determined, model_of, parameters, prior_values
from dse.calibration.timing.sensitivity import STEPS, sensitivities
from dse.calibration.timing.stages import StagedFit
from dse.measured.timed_rows import best
from dse.reports.calibrate.terminal import sensitivity_table
from tests.calibration.timing.products import products, timed

TRUTH = prior_values("matrix") | {"dram": 0.85, "l2": 0.6, "tensor": 0.85, "launch_k": 2200.0}
FREE = ("dram", "l2", "tensor", "launch_k", "split")


@pytest.fixture(scope="module")
def swept():
    """The sweep at the parameters that products were made with."""
    frame = products(40)
    predicted, _ = best(model_of(TRUTH), timed(frame))
    none = np.zeros(len(FREE))
    known = Determined(FREE, none, none, none, none, none)
    fit = StagedFit({n: v for n, v in TRUTH.items() if n != "overhead_us"}, (), known, predicted)
    return sensitivities(timed(frame.assign(latency_us=predicted)), fit, "matrix")


def test_the_error_grows_away_from_the_truth(swept):
    assert {one.parameter for one in swept} == set(FREE)
    bounds = {p.name: (p.low, p.high) for p in parameters("matrix")}
    for one in swept:
        assert one.fitted == pytest.approx(TRUTH[one.parameter]) and one.fitted_error < 0.01
        assert (len(one.values), len(one.errors)) == (STEPS, STEPS)
        assert (one.values[0], one.values[-1]) == pytest.approx(bounds[one.parameter])
    dram = next(one for one in swept if one.parameter == "dram")
    below = [error for value, error in zip(dram.values, dram.errors, strict=True) if value < dram.fitted]
    assert below == sorted(below, reverse=True) and below[0] > 5


def test_what_the_error_depends_on_most_stands_first(swept):
    reach = [one.reach for one in swept]
    assert reach == sorted(reach, reverse=True) and reach[0] > 5
    console = Console(width=120, record=True)
    console.print(sensitivity_table(swept))
    text = console.export_text()
    assert text.index(swept[0].parameter) < text.index(swept[-1].parameter)
