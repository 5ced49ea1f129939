"""Data types that a space's designs lack: refused where no design has them, or the base alone has not."""

from collections.abc import Sequence

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.space.data_types import refuse_of_base, refuse_types
from dse.workload.parse import load_workload
from dse.workload.workload import Workload

A100 = preset_sheet("a100_sxm_80gb")


@pytest.fixture(scope="module")
def fp8() -> Sequence[Workload]:
    """One workload, ``decode``, whose products are in 8 bits."""
    return [load_workload("gpt2_xl:phase=decode,batch=1,context=16,dtype=fp8", name="decode")]


def test_a_type_that_no_design_has_is_refused_with_the_axis_that_would_give_it(fp8: Sequence[Workload]) -> None:
    with pytest.raises(InputError, match=r"here: \[workloads\] decode: .* computes in fp8, which A100") as told:
        refuse_types(A100, {"sm_count", "tensor_fma_bf16"}, fp8, "here")
    assert str(told.value).endswith("(an axis tensor_fma_fp8 would give it)")


@pytest.mark.parametrize("varied", [{"tensor_fma_fp8"}, {"tensor_cores_per_sm"}])
def test_an_axis_or_a_link_may_give_the_type(varied: set[str], fp8: Sequence[Workload]) -> None:
    refuse_types(A100, varied, fp8, "here")


def test_a_base_that_has_the_type_is_no_matter(fp8: Sequence[Workload]) -> None:
    refuse_types(preset_sheet("h100_sxm"), set(), fp8, "here")
    refuse_of_base(preset_sheet("h100_sxm"), ["decode.tbt_ms"], fp8, "here")


@pytest.mark.parametrize("result", ["decode.tbt_ms", "total.time_ms"])
def test_a_result_of_a_base_without_the_type_has_no_value(result: str, fp8: Sequence[Workload]) -> None:
    with pytest.raises(InputError, match=rf"base\.{result} has no value: decode computes in fp8"):
        refuse_of_base(A100, [result], fp8, "here")


def test_what_no_workload_decides_the_base_has(fp8: Sequence[Workload]) -> None:
    refuse_of_base(A100, ["die_mm2", "decoder.tbt_ms"], fp8, "here")
