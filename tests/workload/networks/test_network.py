"""Networks: the shipped shapes against published sizes."""

import pytest

from dse.workload.networks.absent import Absent
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.mlp_kinds import Dense, Mixture
from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama2_7b", 6.74), ("llama3_8b", 8.03), ("llama3_70b", 70.6), ("mixtral_8x7b", 46.7), ("opt_13b", 12.85),
     ("qwen2_5_7b", 7.6), ("gpt3_175b", 174.6), ("llama3_405b", 405.9), ("bloom_176b", 176.2), ("bloom_7b1", 7.07),
     ("gemma_7b", 8.54), ("gptj_6b", 6.05), ("qwen1_5_7b", 7.72), ("codellama_34b", 33.74),
     ("qwen_72b", 72.3), ("internlm_20b", 20.1), ("phi_2", 2.78)],
)  # fmt: skip
def test_published_sizes(name, billions):
    assert load_network(name).parameters / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize("network", networks().values(), ids=list(networks()))
def test_a_shipped_network_is_consistent_and_sourced(network):
    for layer, count in network.layers:
        attention, mlp = layer.attention, layer.mlp
        assert count >= 1
        assert not isinstance(attention, GroupedQueryAttention) or attention.heads % attention.kv_heads == 0
        assert isinstance(mlp, Dense | Mixture | Absent)
        assert isinstance(mlp, Absent) or mlp.activation in ("silu", "gelu", "relu")
        assert not isinstance(mlp, Mixture) or 1 <= mlp.experts_per_token < mlp.experts
    assert network.norm in ("rmsnorm", "layernorm")
    assert network.source
    assert network.positions >= 1024
