"""Made-up launches for the tests of power: one of each mix of instructions."""

import numpy as np

from dse.power.counters import COUNTERS, AccelWattchActivity

FP = {"INT_ACC": 4e8, "INT_MUL_ACC": 1e8, "FP_ACC": 2e8, "FP_MUL_ACC": 6e8}
EVERYTHING = {name: 1e6 * (i + 1) for i, name in enumerate(COUNTERS)}
MEMORY = {
    "TOT_INST": 4e7,
    "FP_INT": 3e7,
    "DC_RH": 2e6,
    "DC_RM": 1e6,
    "L2_RH": 7e5,
    "L2_RM": 3e5,
    "MEM_RD": 3e5,
    "NOC_A": 2e6,
}


def launch(counts: dict | None = None, **changes) -> AccelWattchActivity:
    """A launch of integer and FP32 work on 80 SMs, with another set of counters or other settings where given."""
    settings = {"cycles": 150e3, "clock_ghz": 1.447, "lanes": 24.5, "idle_sms": 6.25, "sm_count": 80.0} | changes
    return AccelWattchActivity.of(MEMORY | FP if counts is None else counts, **settings)


def batch(launches: list[AccelWattchActivity]) -> AccelWattchActivity:
    """Launches stacked into one record."""
    values = {
        f: np.stack([np.asarray(getattr(one, f)) for one in launches]) for f in AccelWattchActivity.__dataclass_fields__
    }
    return AccelWattchActivity(**values)
