"""Networks of a covered model type that are no decoders are refused, with the key that says so and the reason."""

import json

import pytest

from dse.base.errors import InputError
from dse.workload.networks.names import load_network
from tests.workload.networks.configurations import LLAMA, config

GEMMA = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "sliding_window": 512,
    "num_hidden_layers": 24,
    "use_bidirectional_attention": False,
}
DUAL_CHUNK = {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144}
"""That of Qwen/Qwen2.5-7B-Instruct-1M."""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"model_type": "qwen2", "dual_chunk_attention_config": DUAL_CHUNK},
            "dual_chunk_attention_config = .*: dual chunk attention is not covered: .*; without this key it is read",
        ),
        (GEMMA | {"use_bidirectional_attention": True}, "use_bidirectional_attention = True: an encoder"),
        (GEMMA | {"use_bidirectional_attention": "all"}, "use_bidirectional_attention = 'all': an encoder"),
        (GEMMA | {"use_bidirectional_attention": "no"}, "'no': this is not accepted; give true, false or vision"),
        (GEMMA | {"use_bidirectional_attention": ["all"]}, "is not accepted; give true, false or vision"),
        ({"model_type": "qwen2", "is_causal": False}, "is_causal = False: an encoder"),
        (GEMMA | {"architectures": ["Gemma3TextModel"]}, "architectures = .*Gemma3TextModel.*: its class has no head"),
        ({"model_type": "qwen3", "architectures": ["Qwen3Model"]}, "its class has no head that predicts tokens"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "it has a head of its own in place of the one"),
        ({"model_type": "qwen2", "architectures": ["Qwen2ForRewardModel"]}, "it has a head of its own in place of"),
        ({"architectures": ["LlamaBidirectionalModel"]}, "LlamaBidirectionalModel.*: an encoder"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "Eagle3.*: a draft, which runs on the states of another"),
        (
            {"model_type": "qwen3", "architectures": ["DFlashDraftModel"]},
            "a draft, which runs on the states of another",
        ),
    ],
)
def test_what_is_no_decoder_is_refused_by_name(tmp_path, changes, reason):
    with pytest.raises(InputError, match=reason):
        load_network(str(config(tmp_path, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        GEMMA,
        GEMMA | {"use_bidirectional_attention": "vision"},  # Gemma 4: the tokens of an image alone
        {"is_causal": True},
        {"architectures": ["LlamaForCausalLM"]},
        {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]},
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]},
        {"model_type": "qwen2", "dual_chunk_attention_config": None},
        {"architectures": []},
    ],
)
def test_a_decoder_is_read(tmp_path, changes):
    assert load_network(str(config(tmp_path, **changes))).vocab == 128256


def test_a_model_of_glm_has_its_head(tmp_path):
    said = {
        "model_type": "chatglm",
        "architectures": ["ChatGLMModel"],
        "multi_query_group_num": 2,
        "kv_channels": 128,
        "num_key_value_heads": None,
    }
    assert load_network(str(config(tmp_path, **said))).vocab == 128256


def test_the_whole_file_s_class_counts_not_that_of_its_part(tmp_path):
    path = tmp_path / "config.json"
    whole = {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"]}
    path.write_text(json.dumps(whole | {"llm_config": LLAMA | {"architectures": ["LlamaModel"]}}))
    assert load_network(str(path)).vocab == 128256
    path.write_text(json.dumps({"text_config": LLAMA | {"is_causal": False}}))
    with pytest.raises(InputError, match="is_causal = False: an encoder"):
        load_network(str(path))
