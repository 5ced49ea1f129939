"""Axes from lists and ranges."""

import pytest

from dse.base.errors import InputError
from dse.hardware.schema import gpu_schema
from dse.space.axis import make_axis


@pytest.mark.parametrize(
    ("name", "spec", "values"),
    [
        ("sm_count", [132, 100], [132, 100]),
        ("sm_count", {"from": 10, "to": 20, "step": 5}, [10, 15, 20]),
        ("sm_count", {"from": 10, "to": 21, "step": 5}, [10, 15, 20]),
        ("l2_mib", {"from": 10, "to": 20, "count": 3}, [10, 15, 20]),
        ("l2_mib", {"from": 1, "to": 100, "count": 3, "scale": "log"}, [1, 10, 100]),
        ("sm_count", {"from": 1, "to": 100, "count": 3}, [1, 50, 100]),
        ("l2_mib", {"from": 1.1, "to": 1.4, "step": 0.1}, [1.1, 1.2, 1.3, 1.4]),  # 1.1 + 3 * 0.1 is above 1.4
        ("dram_bandwidth_gbs", {"from": 1234.5678, "to": 3350.1234, "count": 3}, [1234.5678, 2292.35, 3350.1234]),
        ("dram_type", ["hbm3", "gddr7"], ["hbm3", "gddr7"]),
        ("warpgroup_mma", [True, False], [True, False]),
        ("l2_mib", 50, [50]),
    ],
)
def test_values(name: str, spec: object, values: list) -> None:
    axis = make_axis(gpu_schema()[name], spec, "here")
    assert axis.values == values


@pytest.mark.parametrize(
    ("name", "spec", "part"),
    [
        ("sm_count", [], "no value"),
        ("sm_count", [132, 132], "twice"),
        ("sm_count", [132.5], "a whole number from 1 to 1024 SM"),
        ("sm_count", ["many"], "'many'"),
        ("sm_count", [True], "True"),
        ("sm_count", [2000], "2000"),
        ("sm_count", {"from": 1, "to": 9}, "either step or count"),
        ("sm_count", {"from": 1, "to": 9, "step": 0}, "step = 0"),
        ("sm_count", {"from": 9, "to": 1, "step": 1}, "not below"),
        ("sm_count", {"from": 1, "to": 9, "stp": 1}, "'stp'"),
        ("l2_mib", {"from": 1, "to": 9, "count": 1}, "count = 1"),
        ("l2_mib", {"from": 1, "to": 9, "count": 3, "scale": "cubic"}, "cubic"),
        ("l2_mib", {"from": 1, "to": 9, "step": 3, "scale": "log"}, "count instead of step"),
        ("sm_count", {"from": 1, "to": 4, "count": 9}, "count = 9 gives only 4 different values of sm_count"),
        ("sm_count", {"from": 1, "to": 10, "step": 2.5}, "give whole numbers for from and step"),
        ("dram_type", {"from": 1, "to": 3, "step": 1}, "makes no sense"),
        ("dram_type", ["hbm9"], "one of gddr5"),
        ("sm_count", {"from": 1, "to": 1000, "step": 1e-6}, "at most"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(name: str, spec: object, part: str) -> None:
    with pytest.raises(InputError, match=part) as caught:
        make_axis(gpu_schema()[name], spec, "file: [axes] it")
    assert str(caught.value).startswith("file: [axes] it")
