"""Which of a GPU's neighbours ``dse run`` would refuse, and why."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dse.explanation.refusal import why_refused
from dse.hardware.presets import preset_sheet
from dse.power.power_limit import SLOWEST

GPU = preset_sheet("h100_sxm").numbers()


def evaluated(gigabytes: float, runs: float = 1.0, clock: float = 0.9) -> Any:
    """One design of two operators, whose workload needs so much memory."""
    workload = SimpleNamespace(
        operators=[SimpleNamespace(name="qkv"), SimpleNamespace(name="attention")],
        memory=SimpleNamespace(total=gigabytes * 1e9),
    )
    timing = SimpleNamespace(feasible=np.array([[1.0, runs]]))
    return SimpleNamespace(workload=workload, timing=timing, clock=np.array([clock]))


@pytest.mark.parametrize(
    ("gpu", "changes", "needs", "sentence"),
    [
        ({}, {}, 20, ""),
        ({}, {"runs": 0.0}, 20, "the changed GPU has no kernel for attention that runs"),
        ({"l1_kib": 128.0}, {}, 20, "its shared memory would be more than the L1 that holds it"),
        ({"dies": 2.0}, {}, 20, "nothing would join its dies"),
        ({"dies": 8.0, "die_link_gbs": 900.0}, {}, 20, "its 8 dies could not share 132 SMs equally"),
        ({"dies": 2.0, "die_link_gbs": 900.0}, {}, 20, ""),
        ({"dram_gb": 16.0}, {}, 20, "the workload needs 20.0 GB"),
        ({"tdp_w": 72.0}, {"clock": SLOWEST}, 20, "at its lowest clock the board would draw more than its limit"),
    ],
)
def test_a_neighbour_is_refused_as_run_refuses_it(gpu, changes, needs, sentence):
    assert why_refused(GPU | gpu, evaluated(needs, **changes), 0) == sentence
