"""Measured rows as operators: what their notes say of the kernel that ran."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.measured.protocol import protocol_of, protocols
from dse.measured.row_operator import operator
from dse.workload.operators.gemm_library import TUNED


def attention(**given: float) -> SimpleNamespace:
    """A row of a prefill as a table holds it."""
    shape = {"batch": 1.0, "heads": 8.0, "kv_heads": 8.0, "head_dim": 128.0, "seq_q": 4096.0, "seq_kv": 4096.0}
    return SimpleNamespace(source="mine", op="attn_prefill", dtype="bf16", notes="", **(shape | given))


def test_a_prefill_that_is_not_causal_has_twice_the_work():
    whole, half, unsaid = (
        operator(attention(**given), 8.0, warpgroup=False).candidates[0].kernel.fma
        for given in ({"causal": 0.0}, {"causal": 1.0}, {"causal": float("nan")})
    )
    assert whole == pytest.approx(2 * half, rel=1e-3)
    assert unsaid == half


@pytest.mark.parametrize(
    ("source", "row", "launches", "busy"),
    [
        ("aiconfigurator", {"op": "gemm"}, 54, 0.0),
        ("aiconfigurator", {"op": "attn_decode"}, 9, 0.0),
        ("aiconfigurator", {"op": "gemm", "power_w": 500.0}, math.inf, 0.0),
        ("aiconfigurator", {"op": "gemm", "power_w": float("nan")}, 54, 0.0),
        ("dse_measure", {"op": "gemm", "power_w": 500.0}, 1, 140e3),  # timed apart from the loop of the power
        ("dse_measure", {"op": "gemm", "notes": "impl=x; busy_us=20000; graph=1"}, 1, 20e3),
    ],
)
def test_how_long_a_reading_keeps_the_board_busy(source, row, launches, busy):
    way = protocol_of(source)
    found = SimpleNamespace(**({"notes": ""} | row))
    assert (way.back_to_back(found), way.busy_us(found)) == (launches, busy)


@pytest.mark.parametrize("said", ["1.2.3", "", "nan", "-5", "long"])
def test_a_busy_time_that_is_none_is_refused(said):
    with pytest.raises(InputError, match=f"notes say busy_us={said}; give microseconds"):
        protocol_of("dse_measure").busy_us(SimpleNamespace(op="gemm", notes=f"impl=x; busy_us={said}; graph=1"))


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
    found = operator(product(notes), 8.0, protocols()["neusight"], TUNED).candidates
    assert {candidate.label.split(" split-k")[0] for candidate in found} == tiles


@pytest.mark.parametrize("notes", ["", "set=test", "kernel=sgemm_7x9", float("nan")])
def test_any_tile_is_a_candidate_where_no_known_one_is_named(notes):
    found = operator(product(notes), 8.0, protocols()["neusight"], TUNED).candidates
    assert len({candidate.label.split(" split-k")[0] for candidate in found}) > 5


def test_a_batched_product_is_one_by_either_name():
    row = SimpleNamespace(op="gemm", dtype="bf16", batch=8.0, m=512, n=512, k=512, source="", notes="")
    made = [operator(SimpleNamespace(**vars(row) | said), 9.0) for said in ({}, {"op": "bmm"}, {"batch": np.nan})]
    assert made[0].shape == made[1].shape == "8 x 512 x 512 x 512 bf16"
    assert made[2].shape == "512 x 512 x 512 bf16"
