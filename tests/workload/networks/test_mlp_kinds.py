"""Kinds of MLP: parameters, columns, and the experts that tokens use, by hand."""

from dataclasses import replace
from math import ceil

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.mlp_kinds import Dense, Mixture, distinct_experts
from dse.workload.networks.step import Step
from dse.workload.target import Target

MIXTURE = Mixture(experts=8, experts_per_token=2, ffn=14336, gated=True, activation="silu")


def test_a_gate_is_a_third_projection():
    gated, plain = (Dense(14336, gate, "silu") for gate in (True, False))
    assert (gated.parameters(4096), plain.parameters(4096)) == (3 * 4096 * 14336, 2 * 4096 * 14336)
    assert (gated.columns(2), plain.columns(2)) == (14336, 14336 / 2)


def test_a_mixture_holds_all_experts_and_computes_some():
    assert MIXTURE.parameters(4096, gpus=2) == 8 * 3 * 4096 * 14336
    assert MIXTURE.columns(2) == 2 * 14336


def test_columns_are_shared_out_evenly_or_not_at_all():
    MIXTURE.check(7, "w", "Mixtral")  # 14336 = 7 x 2048
    with pytest.raises(InputError, match="w: tp=3 does not divide the 14336 MLP columns of Mixtral"):
        MIXTURE.check(3, "w", "Mixtral")


def test_the_expected_number_of_distinct_experts():
    assert distinct_experts(8, 2, 1) == pytest.approx(2)
    assert distinct_experts(8, 2, 1e6) == pytest.approx(8)
    assert distinct_experts(8, 2, 4) == pytest.approx(8 * (1 - 0.75**4))
    assert distinct_experts(1, 1, 5) == 1


def test_products_of_experts_pad_their_rows_and_neither_read_write_nor_count_the_padding():
    tokens, hidden, columns = 5, 4096, 14336
    step = Step("decode", tokens, 1, 100, hidden, "rmsnorm", precision("x"), 1, Target((9.0, 9.0), False), 1e9, 1e7)
    found = {operator.name: operator for operator in MIXTURE.operators(step)}
    used, distinct = 2 * tokens, 8 * (1 - 0.75**tokens)
    rows = ceil(used / distinct)
    assert rows * distinct > 1.2 * used  # two rows for 1.6
    up, down = (found[f"expert_{name}_projection"].candidates[0].kernel for name in ("gate_up", "down"))
    assert f" x {rows} x {2 * columns} x {hidden} " in found["expert_gate_up_projection"].shape  # whole rows
    assert up.fma == pytest.approx(used * hidden * 2 * columns)
    assert up.cold_bytes == pytest.approx(distinct * hidden * 2 * columns * 2)
    assert up.warm_bytes == pytest.approx(used * hidden * 2)
    assert up.write_bytes == pytest.approx(used * 2 * columns * 2)
    assert down.warm_bytes == pytest.approx(used * columns * 2)
    (activation,) = (operator for name, operator in found.items() if name.endswith("silu"))
    assert activation.candidates[0].kernel.write_bytes == pytest.approx(used * columns * 2)
    narrow = replace(step, target=Target((9.0, 9.0), True), precision=precision("x", dtype="fp8"))
    quantise, *_ = Dense(columns, True, "silu").shared_out(narrow, "", rows, distinct, used)
    kernel = quantise.candidates[0].kernel
    assert (kernel.warm_bytes, kernel.write_bytes) == pytest.approx((used * hidden * 2, used * hidden))
