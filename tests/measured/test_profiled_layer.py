"""Layers that fill a reading: how long they run and what they draw, beside what was measured of their products."""

from types import SimpleNamespace

import pytest

from dse.hardware.presets import load_sheet
from dse.measured.profiled_layer import OWN, VECTOR_WATTS, ZEROS_WATTS, layer, reading
from dse.measured.protocol import protocols
from dse.measured.row_shape import measured_network
from dse.workload.networks.names import load_network
from experiments import data

A100 = load_sheet("a100_sxm_80gb").numbers()


def row(**given) -> SimpleNamespace:
    """A row of a product as vidur's table holds it."""
    shape = {"op": "gemm", "dtype": "fp16", "m": 1024.0, "n": 4096.0, "k": 4096.0, "tp": 1.0, "notes": ""}
    return SimpleNamespace(**({"source": "vidur", "group": "vidur_Llama-2-7b-hf"} | shape | given))


def test_a_reading_of_a_known_network_lasts_its_layers_and_no_launches():
    way = protocols()["vidur"]
    one = layer(load_network("llama2_7b"), 1024, 1, "fp16", A100)
    assert one.us > way.layer_host_us
    assert reading(row(), way, A100) == pytest.approx((way.layers * one.us, one.drawn))
    assert way.back_to_back(row()) == 0
    # Which of the layer's products it is makes no difference.
    assert reading(row(n=22016.0), way, A100) == reading(row(), way, A100)


def test_a_gated_layer_multiplies_zeros_last_and_draws_less():
    gated, plain = (layer(load_network(name), 4096, 1, "fp16", A100) for name in ("llama2_7b", "phi_2"))
    down = 11008 / (4096 * 4 + 11008 * 3)
    assert gated.zeros_us / gated.products_us == pytest.approx(down, rel=0.02) and plain.zeros_us == 0
    expected = 1 - (1 - ZEROS_WATTS) * gated.zeros_us / gated.us - (1 - VECTOR_WATTS) * gated.vectors_us / gated.us
    assert gated.drawn == pytest.approx(expected) and 0.8 < gated.drawn < 0.9 < plain.drawn < 1


def test_a_board_waits_where_the_host_is_slower_than_the_layer():
    way = protocols()["vidur"]
    short, long = (reading(row(m=m), way, A100) for m in (16.0, 4096.0))
    assert short.busy_us == way.layers * way.layer_host_us < long.busy_us
    assert 0.3 < short.drawn < 0.7 < long.drawn


@pytest.mark.parametrize("group", ["vidur_a-network-of-ours", "", float("nan")])
def test_a_reading_of_an_unknown_network_lasts_launches_of_its_product(group):
    way = protocols()["vidur"]
    assert reading(row(group=group), way, A100) == OWN
    assert way.back_to_back(row(group=group)) == way.product_launches


def test_no_other_reading_lasts_layers():
    assert reading(row(op="attn_prefill"), protocols()["vidur"], A100) == OWN
    assert reading(row(source="aiconfigurator"), protocols()["aiconfigurator"], A100) == OWN


def test_gpus_share_a_layer():
    one, four = (layer(load_network("llama3_70b"), 4096, gpus, "fp16", A100).us for gpus in (1, 4))
    assert 0.25 * one < four < 0.35 * one  # norms and sums are not shared


@pytest.mark.parametrize(("name", "tp"), [("Llama-2-70b-hf", 1), ("Meta-Llama-3-8B", 8), ("phi-2", 1)])
def test_a_layer_takes_about_what_its_products_were_measured_to(name, tp):
    rows = data.frame("vidur__gemm")
    rows = rows[(rows["group"] == f"vidur_{name}") & (rows["tp"] == tp) & rows["device"].str.startswith("A100")]
    near = rows[rows["m"].between(1000, 4000)]
    products = near.assign(us=near["latency_us"] / near["m"]).groupby("notes")["us"].median().sum()
    assert len(near["notes"].unique()) == 4
    network = measured_network(near.iloc[0])
    assert network is not None
    ours = layer(network, 2048, tp, "fp16", A100).us / 2048
    assert 0.9 < ours / products < 1.5  # vector kernels come on top
