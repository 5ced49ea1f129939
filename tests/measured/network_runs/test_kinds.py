"""What a measured run of a whole network may be."""

import pytest

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.measured.network_runs.kinds import DTYPES, MOST, RUN_SHAPE, RUNS, WHY_NOT
from dse.workload.dtypes import precision
from dse.workload.parse import load_workload


def test_a_run_is_predicted_or_says_why_not() -> None:
    assert not set(RUNS) & set(WHY_NOT)
    assert set(MOST) == set(RUN_SHAPE)


@pytest.mark.parametrize("name", DTYPES)
def test_a_run_s_types_are_those_of_a_workload(name: str) -> None:
    types = ",".join(f"{key}={value}" for key, value in DTYPES[name].items())
    workload = load_workload(f"gpt2_xl:phase=decode,batch=1,context=16,{types}")
    weights = 1.56e9 * element_bytes(precision(name, **DTYPES[name]).weights)  # parameters of GPT-2 XL
    assert workload.memory.weights == pytest.approx(weights, rel=0.2)


@pytest.mark.parametrize("key", ["batch", "tp"])
def test_more_than_the_most_is_no_workload_either(key: str) -> None:
    with pytest.raises(InputError, match=key):
        load_workload(f"gpt2_xl:phase=decode,{key}={MOST[key] + 1}")
