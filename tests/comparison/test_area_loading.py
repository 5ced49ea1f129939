"""What the errors of ratios of areas hang on."""

import numpy as np

from dse.comparison.area_loading import area_loading
from dse.hardware.presets import load_sheet

BASE = load_sheet("h100_sxm").numbers()


def of(*changes: dict[str, float]) -> dict[str, np.ndarray]:
    every = [BASE, *(BASE | change for change in changes)]
    return {name: np.array([one[name] for one in every]) for name in BASE}


def test_what_two_dies_share_cancels() -> None:
    loading = area_loading(of({}, {"nvlink_gbs": 900}, {"l2_mib": 100}, {"l2_mib": 200}, {"process": 0.0}))
    area = loading.shared["area"]
    apart = np.linalg.norm(area - area[0], axis=1)
    assert apart[1] == 0 and 0 < apart[2] < apart[3] < apart[4]
    assert apart[5] > 0.01  # the density of another node
