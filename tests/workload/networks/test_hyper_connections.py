"""Several residual streams: what mixes them and spreads a result, counted for one layer of each shape."""

from dataclasses import replace

from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense
from tests.workload.networks.test_step import STEP

LAYER = Layer(GroupedQueryAttention(32, 8, 128), Dense(14336, True, "silu"))


def names(layer, step=STEP):
    return [operator.name for operator in layer.operators(step)]


def test_streams_stand_in_place_of_the_norms_with_their_residuals():
    one, four = names(LAYER), names(replace(LAYER, streams=4))
    added = {f"{half}_{what}" for half in ("attention", "mlp") for what in ("stream_weights", "mix", "spread")}
    assert [name for name in four if name not in added] == one
    assert added <= set(four)


def test_bytes_grow_with_the_streams():
    size = STEP.rows * STEP.hidden * 2
    for streams in (2, 4):
        made = {o.name: o.candidates[0].kernel for o in replace(LAYER, streams=streams).operators(STEP)}
        assert made["attention_stream_weights"].fma == STEP.rows * (2 + streams) * streams * streams * STEP.hidden
        mix, spread = made["attention_mix"], made["attention_spread"]
        assert (mix.warm_bytes, mix.write_bytes) == (streams * size, size)
        assert (spread.warm_bytes, spread.write_bytes) == ((streams + 1) * size, streams * size)
