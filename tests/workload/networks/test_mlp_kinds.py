"""Kinds of MLP: parameters, columns, and the experts that tokens use, by hand."""

import pytest

from dse.base.errors import InputError
from dse.workload.networks.mlp_kinds import Dense, Mixture, distinct_experts

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
