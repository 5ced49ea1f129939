"""Axes over base GPUs and settings of workloads: how they are written, and what is refused."""

from typing import Any

import pytest

from dse.base.errors import InputError
from dse.space.setting_axes import parted, stated, with_settings
from dse.space.space import load_space, space_from_mapping

WORKLOADS = {"prefill": {"use": "gpt2_xl:phase=prefill,batch=1", "weight": 2.0}, "decode": "gpt2_xl:batch=8"}


def test_a_quoted_key_and_a_dotted_one_are_the_same():
    quoted = parted({"decode.batch": [1, 8], "sm_count": [96, 132]})
    assert quoted == parted({"decode": {"batch": [1, 8]}, "sm_count": [96, 132]})
    assert quoted == ({"sm_count": [96, 132]}, {"decode.batch": [1, 8]})


def test_a_range_of_an_attribute_is_no_table_of_settings():
    axes = {"sm_count": {"from": 96, "to": 144, "step": 12}}
    assert parted(axes) == (axes, {})


def test_settings_replace_what_a_workload_states_and_keep_its_weight():
    changed = with_settings(WORKLOADS, {"decode.batch": 64, "workloads.tp": 2}, "here")
    assert changed["decode"] == "gpt2_xl:batch=64,tp=2"
    assert changed["prefill"] == {"use": "gpt2_xl:phase=prefill,batch=1,tp=2", "weight": 2.0}
    assert (stated(WORKLOADS, "decode.batch"), stated(WORKLOADS, "decode.tp")) == ("8", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"decode.btach": [1]}, "is not a setting of a workload; did you mean .batch"),
        ({"decoder.batch": [1]}, "'decoder' is not a workload of this space"),
        ({"decode.batch": []}, "the axis has no value"),
        ({"decode.batch": [1, 1]}, "given twice"),
        ({"decode.batch": [0]}, "whole number from 1"),
        ({"decode.batch": [1, "8"]}, "mixes names and numbers"),
        ({"decode.tp": [1, 3]}, r"\[axes\] decode.tp = 3"),
        ({"decode.dtype": ["bf16", "bf61"]}, r"\[axes\] decode.dtype = bf61"),
        ({"base": ["h100_sxm", "H100 SXM5 80GB"]}, "given twice"),
        ({"base": "h200"}, "a list of them"),
        ({"base": ["h100_sxm", 3]}, "a list of them"),
        ({"base": ["h100_sxm", "h1000"]}, "no GPU is called 'h1000'"),
        ({"decode.batch": list(range(1, 1500))}, "1,499 combinations"),
    ],
)
def test_mistakes_are_told(small: dict[str, Any], change: dict[str, Any], said: str):
    small["axes"] |= change
    if "base" in change:
        del small["base"]
    with pytest.raises(InputError, match=said):
        space_from_mapping(small, "here", "small")


def test_a_base_stands_in_one_place(small: dict[str, Any]):
    small["axes"]["base"] = ["h100_sxm", "h200"]
    with pytest.raises(InputError, match=r"at the top of the file and in \[axes\]"):
        space_from_mapping(small, "here", "small")


def test_a_file_may_hold_them_at_the_top_or_dotted(small: dict[str, Any], write_space: Any):
    path = write_space(small | {"base": ["h100_sxm", "h200"]})
    text = path.read_text(encoding="utf-8").replace("[axes]", "[axes]\ndecode.batch = [1, 8]")
    path.write_text(text, encoding="utf-8")
    space = load_space(path)
    assert [axis.name for axis in space.axes][:3] == ["base", "decode.batch", "tensor_fma_bf16"]
    assert space.size == 2 * 2 * 45
