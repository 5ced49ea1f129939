"""The protocols of measurements as records."""

from types import SimpleNamespace

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_sheet
from dse.measured.protocol import find_protocol, highest_clocks, protocol_of, protocols
from tests.measured.large_product import chosen


def test_harnesses_are_records_by_source():
    assert protocol_of("vidur").name == "vidur"
    assert protocol_of("mine").name == "unknown"
    aic, vidur = find_protocol("aiconfigurator"), find_protocol("vidur")
    assert aic.distances(1.0, 10.0, 2.0) == (63.0, 63.0, 63.0)
    assert vidur.distances(1.0, 10.0, 2.0) == (3.0, 1e15, 3.0)
    assert {h.clock for h in protocols().values()} == {"boost", "sheet"}
    with pytest.raises(InputError, match="--harness: no harness is called 'vidr'; did you mean 'vidur'"):
        find_protocol("vidr")


def test_who_multiplied_zeros():
    row = SimpleNamespace(op="gemm", dtype="fp16")
    assert protocol_of("deepbench").of_zeros(row)
    assert not protocol_of("deepbench").of_zeros(SimpleNamespace(op="gemm", dtype="fp32"))
    assert not protocol_of("neusight").of_zeros(row)


def test_whose_operands_nobody_drew():
    """As the collectors' code says: TensorRT-LLM's decodes of latent attention read a cache that was never written,
    vLLM's modules multiply one number; prompts of the former make their own keys and values."""
    way = protocol_of("aiconfigurator")
    trtllm, vllm = "impl=trtllm-1.3.0rc15/default", "impl=vllm-0.22.0/default"
    for op, notes, unfilled, alike in (
        ("mla_decode", trtllm, True, False),
        ("mla_decode_module", trtllm, True, False),
        ("mla_prefill", trtllm, False, False),
        ("mla_prefill_module", trtllm, False, False),
        ("mla_decode_module", vllm, False, True),
        ("mla_prefill_module", vllm, False, True),
        ("mla_decode", "impl=sglang-0.5.10/flashmla", False, False),
        ("attn_prefill", "impl=vllm-0.22.0/vllm_flash_attn", True, False),
        ("attn_decode", "impl=vllm-0.22.0/vllm_flash_attn", False, False),
        ("gemm", vllm, False, False),
    ):
        row = SimpleNamespace(op=op, notes=notes)
        assert (way.reads_unfilled(row), way.of_constants(row)) == (unfilled, alike), (op, notes)
    assert not protocol_of("mine").of_constants(SimpleNamespace(op="mla_prefill_module", notes=vllm))


def test_vidurs_a100s_are_pcie_boards():
    """As its documentation and its times suggest; whoever measures an A100 of another source has its preset's 400 W."""
    watts = [float(chosen("a100_sxm_80gb", source=source)[1].gpus.tdp_w[0]) for source in ("vidur", "neusight")]
    assert watts == [300, 400]


def test_short_runs_of_a_geforce_stand_above_its_boost_clock():
    for preset, clock in highest_clocks().items():
        gpu = load_sheet(preset).record()
        short, long = protocols()["llmservingsim"].clocked(gpu, preset), protocols()["unknown"].clocked(gpu, preset)
        assert float(short.tensor_clock_ghz) == float(short.boost_clock_ghz) == pytest.approx(clock / 1e3)
        assert clock > 1.05 * float(gpu.boost_clock_mhz)
        assert float(long.tensor_clock_mhz) == float(gpu.tensor_clock_mhz)


def test_notes_state_how_many_copies_of_the_weights_rotate():
    way = find_protocol("aiconfigurator")
    for notes, copies in (("", 6), ("impl=x; w_copies=1; eager", 1), ("w_copies=1-5", 5), ("w_copies=<=6", 6)):
        assert way.as_noted(notes).weight_copies == copies


def test_attention_of_a_framework_writes_the_cache_but_in_loops_for_power():
    way = protocol_of("aiconfigurator")
    named = {"op": "attn_decode", "notes": "impl=vllm-0.24.0/vllm_flash_attn_fa3"}
    assert way.writes(SimpleNamespace(**named))
    assert not way.writes(SimpleNamespace(**named, power_w=400.0))
    assert not way.writes(SimpleNamespace(op="attn_decode", notes=""))
    assert not protocol_of("vidur").writes(SimpleNamespace(**named))
