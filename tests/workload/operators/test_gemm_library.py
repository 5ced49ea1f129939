"""Libraries of matrix products: what they offer, and how they are launched on some GPUs."""

from math import inf

import pytest

from dse.workload.operators.gemm_library import EARLY, LIBRARIES, REPRESENTATIVE, TUNED, WARPGROUP_ALONE


@pytest.mark.parametrize(
    ("sizes", "clusters"),
    [([8], (8, 4, 2)), ([1], (1,)), ([1, 8], (8, 4, 2, 1)), ([2, 16], (8, 4, 2)), ([4], (4, 2)), ([], (2, 4, 8))],
)
def test_what_no_cluster_holds_runs_cta_by_cta(sizes: list[float], clusters: tuple[int, ...]) -> None:
    assert TUNED.on(sizes).clusters == clusters


def test_a_library_keeps_its_clusters_where_another_is_launched() -> None:
    assert EARLY.launched_as(TUNED.on([8], 227.0)).clusters == (2,)
    assert EARLY.launched_as(TUNED.on([1, 8])).clusters == (2, 1)
    assert EARLY.launched_as(TUNED.on([1])).clusters == (1,)
    assert EARLY.launched_as(TUNED.on([8], 227.0)).room_kib == 227.0


def test_room_is_that_of_the_launch_and_else_without_end() -> None:
    assert TUNED.on([8], 227.0).room_kib == 227.0
    assert TUNED.on([8]).room_kib == inf
    assert TUNED.on([8], 227.0).warp_tiles == TUNED.warp_tiles


def test_kernels_have_the_costs_of_the_library_that_ran_them() -> None:
    assert (TUNED.ran_as(True), TUNED.ran_as(False)) == ("matrix", "matrix")
    assert (EARLY.ran_as(True), EARLY.ran_as(False)) == ("matrix_early_hopper", "matrix_early")


@pytest.mark.parametrize("library", [*LIBRARIES.values(), WARPGROUP_ALONE], ids=lambda library: library.name)
def test_tiles_stand_once_and_are_made_of_whole_fragments(library) -> None:
    for tiles in (library.warp_tiles, library.warpgroup_tiles, library.simt_tiles):
        assert len(set(tiles)) == len(tiles) > 0
        assert all(rows % 16 == 0 and columns % 16 == 0 and warps >= 1 for rows, columns, warps in tiles)
    for rows, columns, warps in library.warpgroup_tiles:
        assert rows % 64 == 0 or columns % 64 == 0  # one side is the instruction's M
        assert warps % 4 == 0
    assert library.splits[0] == 1 and list(library.splits) == sorted(library.splits)


def test_names_find_their_library() -> None:
    assert all(library.name == name for name, library in LIBRARIES.items())
    assert set(REPRESENTATIVE.splits) <= set(TUNED.splits)
