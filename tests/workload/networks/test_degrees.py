"""Over how many GPUs a network is shared out."""

import pytest

from dse import load_workload, run
from dse.base.errors import InputError
from dse.workload.networks.degrees import DEGREE_KEYS, MOST_GPUS, degrees
from dse.workload.networks.network import networks
from dse.workload.parse import KEYS

MIXTURE, DENSE = networks()["qwen3_30b_a3b"], networks()["llama3_8b"]


def test_experts_of_replicas_are_shared_out_over_all_gpus():
    shared = degrees(MIXTURE, {"tp": "2", "dp": "4"}, 32, "w")
    assert shared == {"gpus": 2, "ranks": 8, "replicas": 4, "routing": ""}
    assert degrees(DENSE, {"dp": "4"}, 32, "w")["ranks"] == 1
    assert set(DEGREE_KEYS) <= set(KEYS)


@pytest.mark.parametrize(
    ("network", "settings", "words"),
    [
        (DENSE, {"ep": "2"}, "ep shares out experts, and Llama-3-8B has none"),
        (MIXTURE, {"tp": str(MOST_GPUS + 1)}, "give a whole number from 1 to 1,024"),
        (MIXTURE, {"dp": "5"}, "dp=5 does not divide the 32 requests"),
        (MIXTURE, {"dp": "4", "ep": "2"}, "give ep=4"),
        (MIXTURE, {"tp": "4", "ep": "3"}, "ep=3 does not divide tp=4"),
        (MIXTURE, {"tp": "x"}, "tp=x is not accepted"),
    ],
)
def test_what_shares_nothing_out_evenly_is_refused(network, settings, words):
    with pytest.raises(InputError, match=words):
        degrees(network, settings, 32, "w")


def test_more_gpus_than_eight_share_a_layer_where_nvlink_joins_them():
    text = "llama3_70b:phase=decode,batch=64,context=2048,tp={}"
    eight, sixteen = (run("gb200", text.format(tp)) for tp in (8, 16))
    assert sixteen.workload.gpus == 16 and "over 16 carry their costs on" in sixteen.workload.caution
    assert not eight.workload.caution
    assert 0.3 < sixteen.metrics["tbt_ms"].value / eight.metrics["tbt_ms"].value < 1.5
    with pytest.raises(InputError, match="it sends between 16 GPUs, and NVLink joins 8 of them"):
        run("b200", text.format(16))


def test_each_replica_has_an_engine_s_host_of_its_own():
    text = "llama3_8b:phase=decode,batch=64,context=2048,engine=vllm_0_12"
    whole, replicas = (load_workload(text + more) for more in ("", ",dp=4"))
    assert replicas.phases[0].host.waits_us < whole.phases[0].host.waits_us
