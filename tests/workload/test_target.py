"""For which GPUs kernels are made."""

import pytest

from dse.hardware.presets import preset_sheet
from dse.workload.operators.gemm_library import TUNED
from dse.workload.target import Target


def numbers(*presets: str) -> list[dict[str, float]]:
    return [preset_sheet(preset).numbers() for preset in presets]


def test_one_gpu_is_its_own_range() -> None:
    found = Target.of(numbers("a100_sxm_80gb"))
    assert found.capabilities == (8.0, 8.0)
    assert not found.warpgroup
    assert found.library.room_kib == 164 - 1  # a KiB of each CTA is the system's


def test_of_several_gpus_the_range_holds_all_and_the_room_is_the_least() -> None:
    found = Target.of(numbers("h100_sxm", "v100_sxm2_16gb", "a100_sxm_80gb"))
    assert found.capabilities == (7.0, 9.0)
    assert found.warpgroup  # one of them has the instructions
    assert found.library.room_kib == 96


def test_clusters_are_those_of_gpus_with_warpgroup_instructions() -> None:
    gpus = numbers("h100_sxm", "a100_sxm_80gb")
    assert Target.of(gpus).library.clusters == (8, 4, 2)
    small = gpus[0] | {"cluster_size": 1}
    assert Target.of([small]).library.clusters == (1,)
    assert Target.of([small, gpus[0]]).library.clusters == (8, 4, 2, 1)


def test_the_library_is_the_one_that_was_asked_for() -> None:
    assert Target.of(numbers("h100_sxm"), TUNED).library.name == "tuned"


def test_of_no_gpu_there_is_no_target() -> None:
    with pytest.raises(ValueError):
        Target.of([])
