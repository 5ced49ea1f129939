"""For which GPUs a space's kernels are made: with warp-level tiles where they may win, for every cluster and room."""

import pytest

from dse.hardware.presets import preset_sheet
from dse.hardware.schema import attribute
from dse.space.axis import make_axis
from dse.space.expression import parse_expression
from dse.space.target import space_target


def target(base="h100_sxm", links=(), **axes):
    """The target of a space with these axes and linked attributes."""
    made = [make_axis(attribute(name, "here"), values, "here") for name, values in axes.items()]
    numbers = preset_sheet(base).numbers()
    return space_target(numbers, made, [(name, parse_expression("sm_count", "here", {"sm_count"})) for name in links])


def test_where_every_design_has_room_for_warpgroup_tiles_they_stand_alone():
    found = target(sm_count=[96, 132], l2_mib=[25, 50])
    assert found.capabilities == (9.0, 9.0)
    assert found.library.warpgroup_alone and found.library.clusters == (8, 4, 2)
    assert found.library.room_kib == 227  # one KiB is the system's


@pytest.mark.parametrize(
    "axes",
    [
        {"shared_memory_kib": [164, 228]},
        {"registers_per_sm": [32768, 65536]},
        {"threads_per_sm": [1024, 2048]},
        {"cluster_size": [1, 8]},
        {"warp_mma_fraction": [0.667, 1.0]},
        {"shared_reserved_kib": [1, 4]},
    ],
)
def test_where_warp_level_tiles_may_win_they_are_tried(axes):
    assert not target(**axes).library.warpgroup_alone


def test_an_attribute_that_is_linked_may_be_anything():
    assert not target(links=["shared_memory_kib"], sm_count=[96, 132]).library.warpgroup_alone
    assert target(links=["shared_memory_kib"], sm_count=[96, 132]).library.room_kib == 16 - 1


def test_products_are_launched_for_every_cluster_and_the_least_room():
    found = target(cluster_size=[1, 8], shared_memory_kib=[48, 228], shared_reserved_kib=[1, 2]).library
    assert found.clusters == (8, 4, 2, 1)
    assert found.room_kib == 48 - 2


def test_where_instructions_vary_kernels_are_made_for_any_gpu():
    found = target("a100_sxm_80gb", warpgroup_mma=[False, True], cluster_size=[1, 8])
    assert found.capabilities is None and found.warpgroup
    assert found.library.clusters == (8, 4, 2, 1)


def test_a_base_without_warpgroup_instructions_has_warp_level_tiles():
    assert not target("a100_sxm_80gb", sm_count=[96, 108]).library.warpgroup_alone
