"""Measured rows as operators: what their notes say of the kernel that ran."""

from types import SimpleNamespace

import pytest

from dse.calibrate.harness import harnesses
from dse.calibrate.launches import operator
from dse.calibrate.vector_rows import overhead_of
from dse.workload.library import TUNED


def product(notes: str, dtype: str = "fp32") -> SimpleNamespace:
    """A row of a batched product as a table holds it."""
    shape = {"batch": 64.0, "m": 512.0, "n": 512.0, "k": 64.0}
    return SimpleNamespace(
        source="neusight", device="A100-PCIE-40GB", op="bmm", dtype=dtype, notes=notes, latency_us=100.0, **shape
    )


@pytest.mark.parametrize(
    ("notes", "tiles"),
    [
        ("set=test; kernel=sgemm_128x64", {"ffma 128x64", "ffma 64x128"}),
        ("kernel=ampere_sgemm_32x32_sliced1x4_nn", {"ffma 32x32"}),
        ("kernel=tilesize256x64x8", {"ffma 256x64", "ffma 64x256"}),
    ],
)
def test_a_product_on_cuda_cores_takes_the_tile_that_its_notes_name(notes, tiles):
    found = operator(product(notes), 8.0, harnesses()["neusight"], TUNED).candidates
    assert {candidate.label.split(" split-k")[0] for candidate in found} == tiles


@pytest.mark.parametrize("notes", ["", "set=test", "kernel=sgemm_7x9", float("nan")])
def test_any_tile_is_a_candidate_where_no_known_one_is_named(notes):
    found = operator(product(notes), 8.0, harnesses()["neusight"], TUNED).candidates
    assert len({candidate.label.split(" split-k")[0] for candidate in found}) > 5


def test_the_host_of_an_eager_product_is_a_devices_own_where_it_was_fitted():
    harness = harnesses()["neusight"]
    fitted = overhead_of(product(""), harness)
    assert fitted != (harness.overhead_us, 0.0)
    unknown = SimpleNamespace(**vars(product("")) | {"device": "L4"})
    assert overhead_of(unknown, harness) == (harness.overhead_us, 0.0)
