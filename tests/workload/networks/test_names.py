"""Names of networks: forgiving, never of another size; quantisation that a name or a configuration states."""

import csv

import pytest

from dse import load_workload
from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.names import checkpoint_precision, load_network, network_of, stated_types
from dse.workload.networks.network import networks
from experiments import data
from tests.workload.networks.configurations import config


def test_names_are_forgiving_and_typos_helped():
    assert load_network("Llama-3.1-8B").name == load_network("LLAMA3_8b").name == "llama3_8b"
    with pytest.raises(InputError, match="no network is called 'lama3_8b'; did you mean 'llama3_8b'"):
        load_network("lama3_8b")


@pytest.mark.parametrize(
    "name", ["opt-1.3b", "OPT_1.3B", "gpt3_1.3b", "GPT-3 1.3B", "qwen2_57b", "llama2_1.3b", "qwen2.5_3.2b"]
)
def test_another_size_is_no_spelling_of_a_shipped_one(name):
    with pytest.raises(InputError, match="no network is called"):
        load_network(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Qwen2.5 7B", "qwen2_5_7b"),
        ("qwen-2-5-7b", "qwen2_5_7b"),
        ("GPT-3 6.7B", "gpt3_6_7b"),
        ("gpt3-13b", "gpt3_13b"),
        ("opt_6.7b", "opt_6_7b"),
        ("mixtral 8x7b", "mixtral_8x7b"),
        ("bloom-7b1", "bloom_7b1"),
    ],
)
def test_what_parts_two_digits_may_be_written_in_any_way(name, found):
    assert load_network(name).name == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", "qwen3_30b_a3b"),
        ("nvidia/Qwen3-235B-A22B-NVFP4", "qwen3_235b_a22b"),
        ("nvidia/DeepSeek-R1-0528-FP4", "deepseek_v3"),
        ("Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2_5_7b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral_8x7b"),
    ],
)
def test_a_release_s_date_training_and_types_shape_no_network(name, found):
    assert load_network(name).name == found


@pytest.mark.parametrize("name", ["Mistral-Small-Instruct-2409", "Mistral-7B-v0.2", "Qwen3-8B-VL", "a/b/Qwen3-8B-FP8"])
def test_a_last_word_that_may_shape_a_network_is_not_left_out(name):
    with pytest.raises(InputError, match="no network is called"):
        load_network(name)


def test_published_names_find_their_own_shape():
    for row in csv.DictReader((data.HERE / "networks.csv").open(encoding="utf-8")):
        try:
            known = load_network(row["model"])
        except InputError:
            continue
        assert (known.depth, known.hidden) == (int(row["layers"]), int(row["hidden"])), row["model"]


def test_a_folder_of_the_same_name_does_not_replace_a_shipped_network(tmp_path, monkeypatch):
    (tmp_path / "llama3_8b").mkdir()
    (tmp_path / "llama3_8b" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert load_network("llama3_8b") == networks()["llama3_8b"]


def test_a_checkpoints_types_are_those_of_a_workload_without_any(tmp_path):
    path = config(tmp_path)
    (path.parent / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    assert stated_types(str(path)) == stated_types(str(path.parent))
    assert "fp8 weights, fp8, bf16 KV" in load_workload(f"{path}:phase=decode").description
    assert "bf16" in load_workload(f"{path}:phase=decode,dtype=bf16").description
    (path.parent / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "MIXED_PRECISION"}}')
    with pytest.raises(InputError, match=r"says that its weights are quantised \(MIXED_PRECISION\); give their type"):
        load_workload(f"{path}:phase=decode")
    with pytest.raises(InputError, match=r"says that its weights are quantised \(FP8\); give their type"):
        load_workload("Llama-3.1-8B-Instruct-FP8:phase=decode")


def test_types_of_the_published_checkpoint(tmp_path):
    assert checkpoint_precision("deepseek_v3") == (precision("x", "fp8_block"), "fp8_block")
    assert checkpoint_precision("meta-llama/Llama-3.1-8B-Instruct") == (precision("x"), "")
    assert checkpoint_precision(str(config(tmp_path, torch_dtype="float16"))) == (precision("x", "fp16"), "")
    mixed = {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {"quant_algo": "NVFP4"}}}
    assert checkpoint_precision(str(config(tmp_path, quantization_config=mixed))) == (None, "MIXED_PRECISION of NVFP4")


@pytest.mark.parametrize("group", ["meta-llama/Llama-2-7b-hf", "anl_Llama-2-7b-hf", "llama2_7b"])
def test_a_run_names_its_network_as_others_do(group):
    assert network_of(group).name == "llama2_7b"
