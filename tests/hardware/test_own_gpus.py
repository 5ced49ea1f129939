"""GPUs of a user's own in a calibration's file: known by their numbers, whatever they or their files are called."""

import tomllib

import pytest

from dse.base.errors import InputError
from dse.hardware.own_gpus import TABLE, matching_name, own_gpus, own_lines, preset_of, read_own
from dse.hardware.presets import alike, gpu_from_mapping, preset_sheet

H100 = preset_sheet("h100_sxm")
MINE = gpu_from_mapping({"base": "h100_sxm", "name": "My H100", "l2_mib": 40, "async_copy": False}, "here", "mine.x")
FALSE_H200 = gpu_from_mapping({"base": "h200", "sm_count": 60}, "here", "h200")


def test_a_file_holds_what_a_gpu_differs_in_and_reads_it_again():
    (found,) = read_own(tomllib.loads("\n".join(own_lines([MINE]))), "c.toml")
    assert (found.name, found.title) == ("mine.x", "My H100") and alike(found, MINE)
    bare = gpu_from_mapping({n: e.value for n, e in H100.entries.items()}, "here", "bare")
    (found,) = read_own(tomllib.loads("\n".join(own_lines([bare]))), "c.toml")
    assert alike(found, H100)


def test_a_preset_is_none_of_a_user_s_own_but_a_file_that_is_named_like_one_is():
    assert own_gpus([H100, MINE, FALSE_H200]) == (MINE, FALSE_H200)


def test_a_gpu_is_known_by_its_numbers():
    copy = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 40, "async_copy": False}, "here", "copy")
    other = gpu_from_mapping({"base": "h200", "l2_mib": 4}, "here", "mine.x")
    names, own = ("mine.x", "h200", "a100_sxm_80gb"), (MINE, FALSE_H200)
    assert matching_name(copy, names, own) == matching_name(MINE, names, own) == "mine.x"
    assert matching_name(other, names, own) == ""
    assert matching_name(FALSE_H200, names, own) == "h200" and matching_name(preset_sheet("h200"), names, own) == ""
    assert matching_name(preset_sheet("a100_sxm_80gb"), names, own) == "a100_sxm_80gb"


def test_another_capacity_is_the_same_gpu_where_none_has_the_very_numbers():
    small, large = preset_sheet("v100_sxm2_16gb"), preset_sheet("v100_sxm2_32gb")
    assert matching_name(large, ("h200", small.name), ()) == small.name
    assert matching_name(large, (small.name, large.name), ()) == large.name
    assert (
        matching_name(gpu_from_mapping({"base": "h100_sxm", "dram_gb": 120}, "here", "more"), (H100.name,), ())
        == H100.name
    )
    assert (preset_of(small), preset_of(large)) == (small.name, large.name)


def test_a_file_without_numbers_knows_a_gpu_by_its_name():
    assert matching_name(MINE, ("mine.x",), ()) == "mine.x" and matching_name(H100, ("mine.x",), ()) == ""


@pytest.mark.parametrize("wrong", ["mine", {"mine": 3}, {"mine": {"base": "h100_sxm", "sm_cuont": 4}}])
def test_what_is_no_gpu_is_refused(wrong):
    with pytest.raises(InputError, match=f"c.toml: {TABLE}"):
        read_own({TABLE: wrong}, "c.toml")
