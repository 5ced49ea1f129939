"""Hugging Face configurations: covered, or refused with what they say."""

import json

import pytest

from dse.base.errors import InputError
from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks
from dse.workload.parse import load_workload
from tests.workload.networks.configurations import (
    AXK1,
    DEEPSEEK_V3,
    DEVSTRAL,
    HUNYUAN,
    IQUEST,
    KIMI_K2,
    LAGUNA,
    LLAMA,
    MIMO_V2,
    MINICPM3,
    MINIMAX_M2,
    OPT_350M,
    V2_LITE,
    config,
)


def sizes(network):
    """Every number of a network whose layers are all alike, by name."""
    ((layer, count),) = network.layers
    blocks = {"experts": 1} | vars(layer.attention) | vars(layer.mlp)
    return vars(network) | blocks | {"layers": count}


def test_a_hugging_face_config_is_the_shipped_network(tmp_path):
    found, shipped = load_network(str(config(tmp_path))), networks()["llama3_8b"]
    same = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "vocab", "norm", "activation", "tied")
    assert {key: sizes(found)[key] for key in same} == {key: sizes(shipped)[key] for key in same}
    assert load_network(str(tmp_path / "net")) == found
    assert found.positions == 0
    assert load_network(str(config(tmp_path, max_position_embeddings=8192))).positions == 8192


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_key_value_heads": None}, {"kv_heads": 32}),
        ({"use_mla": False}, {"kv_heads": 8}),
        ({"head_dim": 64}, {"head_dim": 64}),
        ({"head_dim": 64, "hidden_size": 4097}, {"head_dim": 64}),
        ({"sliding_window": 4096}, {"window": 4096}),
        ({"sliding_window": 4096, "use_sliding_window": False}, {"window": 0}),
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, {"experts": 8, "experts_per_token": 2}),
        ({"model_type": "gpt2", "hidden_act": "gelu_new"}, {"gated": False, "norm": "layernorm", "rotary": False}),
        ({"model_type": "gemma", "hidden_act": "gelu", "head_dim": 128, "tie_word_embeddings": None}, {"tied": True}),
        ({"model_type": "falcon", "multi_query": True, "num_key_value_heads": None}, {"kv_heads": 1, "gated": False}),
        # Falcon-7B's own configuration holds 71 key-value heads, which only its new architecture reads.
        (
            {"model_type": "falcon", "multi_query": True, "num_kv_heads": 32, "num_key_value_heads": None},
            {"kv_heads": 1},
        ),
        ({"model_type": "falcon", "new_decoder_architecture": True, "multi_query": True}, {"kv_heads": 8}),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 32},
            {"window": 0},
        ),
        ({"model_type": "cohere", "tie_word_embeddings": None}, {"tied": True, "norm": "layernorm", "gated": True}),
        ({"model_type": None}, {"kv_heads": 8, "gated": True}),
        # What is gated is the kind's to say: ReluLLaMA has a gate too.
        ({"hidden_act": "relu"}, {"gated": True}),
        ({"model_type": "qwen2", "hidden_act": "gelu"}, {"gated": True}),
        ({"model_type": "falcon", "intermediate_size": None, "ffn_hidden_size": 8192}, {"ffn": 8192, "gated": False}),
        ({"model_type": "olmo"}, {"norm": "layernorm"}),
        (
            {"model_type": "qwen3_moe", "num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
            {"experts": 64, "ffn": 768},
        ),
        ({"text_config": LLAMA | {"vocab_size": 7}}, {"vocab": 7}),
        ({"text_config": LLAMA | {"tie_word_embeddings": None}, "tie_word_embeddings": True}, {"tied": True}),
        ({"sliding_window": 4096, "layer_types": ["full_attention"] * 32}, {"window": 0}),
        ({"sliding_window": 4096, "layer_types": ["sliding_attention"] * 32}, {"window": 4096}),
        ({"decoder_sparse_step": 1, "mlp_only_layers": []}, {"experts": 1}),
        ({"model_type": None, "architectures": ["Qwen3ForCausalLM"]}, {"qk_norm": "head"}),
        ({"model_type": None, "architectures": ["GPTNeoXForCausalLM"]}, {"gated": False, "norm": "layernorm"}),
        # GLM-4-9B
        (
            {
                "model_type": "chatglm",
                "num_hidden_layers": None,
                "num_layers": 40,
                "intermediate_size": None,
                "ffn_hidden_size": 13696,
                "num_key_value_heads": None,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
                "kv_channels": 128,
                "vocab_size": None,
                "padded_vocab_size": 151552,
            },
            {"layers": 40, "ffn": 13696, "kv_heads": 2, "head_dim": 128, "vocab": 151552},
        ),
    ],
)
def test_spellings_and_defaults_of_configurations(tmp_path, changes, expected):
    network = sizes(load_network(str(config(tmp_path, **changes))))
    assert {key: network[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hidden_size": None}, "hidden_size or n_embd or d_model is missing"),
        ({"hidden_size": "4096"}, "hidden_size = '4096' is not accepted; give a whole number from 1"),
        ({"vocab_size": -5}, "vocab_size = -5 is not accepted; give a whole number from 1"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0 is not accepted"),
        ({"kv_lora_rank": 512}, "kv_lora_rank = 512: this architecture is not covered"),
        ({"shared_expert_intermediate_size": 5632}, "shared_expert_intermediate_size = 5632: this architecture"),
        ({"mamba_d_state": 16}, "mamba_d_state = 16: this architecture is not covered"),
        ({"layer_types": ["sliding_attention"] * 32}, "layers that slide over a window, and sliding_window is missing"),
        ({"layer_types": ["recurrent"] * 32}, "layer_types has 'recurrent', which is not covered; known are full_att"),
        ({"attention_chunk_size": 8192}, "attention_chunk_size = 8192: this architecture is not covered with model_t"),
        ({"model_type": "gemma4_text", "hidden_size_per_layer_input": 256}, "hidden_size_per_layer_input = 256: this"),
        ({"model_type": "bert"}, "model_type = 'bert': this architecture is not covered"),
        ({"model_type": "qwen"}, "model_type = 'qwen': this architecture is not covered, as [0-9]+ others are "),
        ({"num_key_value_heads_per_layer": [4, 1]}, "num_key_value_heads_per_layer = .4, 1.: this architecture"),
        ({"intermediate_size": None}, "intermediate_size or ffn_dim or ffn_hidden_size or n_inner is missing"),
        ({"index_topk": 2048}, "index_topk = 2048: this architecture is not covered"),
        ({"model_type": "mixtral", "num_key_value_heads": None}, "num_key_value_heads is missing, and model_type = 'm"),
        ({"model_type": "mistral"}, "sliding_window is missing, and model_type = 'mistral' has a default of its own"),
        ({"model_type": "glm4"}, "head_dim is missing, and model_type = 'glm4' has a default"),
        (DEEPSEEK_V3 | {"model_type": "kimi_k2", "v_head_dim": None}, "v_head_dim is missing"),
        (DEEPSEEK_V3 | {"first_k_dense_replace": 62}, "first_k_dense_replace = 62 does not go with 61 layers"),
        ({"text_config": 3}, "text_config is not an object"),
        ({"layer_types": ["full_attention"] * 2}, "layer_types states 2 layers, and there are 32; give one each"),
        ({"num_key_value_heads": 5}, "5 key-value heads do not go with 32"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "9 experts a token do not go with 8"),
        ({"num_local_experts": 8}, "num_experts_per_tok or .* is missing"),
        ({"hidden_size": 4097}, "hidden_size = 4097 is no multiple of num_attention_heads = 32; give head_dim"),
        (
            {"num_attention_heads": None, "n_head": 33, "num_key_value_heads": 1},
            "hidden_size = 4096 is no multiple of n_head = 33; give head_dim",
        ),
        ({"head_dim": 0}, "head_dim = 0 is not accepted; give a whole number from 1"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings = 'false' is not accepted; give true or false"),
        ({"model_type": "hunyuan_v1_moe", "use_cla": True}, "use_cla = True: this architecture is not covered"),
        ({"model_type": "minicpm", "sparse_config": {"topk": 64}}, "sparse_config = .*: this architecture"),
        ({"draft_vocab_size": 32000}, "draft_vocab_size = 32000: this architecture is not covered"),
        ({"model_type": "longcat_flash", "ngram_vocab_size_ratio": 78}, "ngram_vocab_size_ratio = 78: this architec"),
        ({"use_mla": True}, "use_mla = True: this architecture is not covered"),
        (DEEPSEEK_V3 | {"model_type": "deepseek_v2", "use_mla": False}, "use_mla = False: this architecture"),
        ({"model_type": "chatglm", "multi_query_attention": False}, "multi_query_attention = False: this architecture"),
        ({"model_type": None, "architectures": ["Grok1ForCausalLM"]}, "model_type is missing, and architectures = .*"),
        ({"model_type": None, "architectures": {"a": 1}}, "model_type is missing, and architectures = .*"),
        ({"model_type": None, "peft_type": "LORA"}, "is an adapter's adapter_config.json, by its key 'peft_type'"),
        ({"model_type": None, "dim": 4096, "n_layers": 32}, "is the publisher's own params.json, by its key 'dim'"),
        ({"layer_types": 5}, "layer_types = 5 is not accepted; give a list of texts"),
        ({"layer_types": [["full_attention"]]}, "layer_types = .* is not accepted; give a list of texts"),
        (
            {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": "x"},
            "max_window_layers = 'x' is not",
        ),
    ],
)
def test_configurations_that_are_not_covered_are_refused(tmp_path, changes, sentence):
    with pytest.raises(InputError, match=sentence):
        load_network(str(config(tmp_path, **changes)))


@pytest.mark.parametrize(
    ("whole", "published_1e9"),
    [
        # llava-1.5-7b, llava-v1.6-mistral-7b, paligemma-3b and Qwen2-Audio-7B leave out what their classes have.
        ({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}}, 6.74),
        (
            {
                "model_type": "llava_next",
                "text_config": {
                    "model_type": "mistral",
                    "intermediate_size": 14336,
                    "num_key_value_heads": 8,
                    "sliding_window": None,
                    "vocab_size": 32064,
                },
            },
            7.24,
        ),
        (
            {
                "model_type": "paligemma",
                "text_config": {
                    "model_type": "gemma",
                    "hidden_size": 2048,
                    "intermediate_size": 16384,
                    "num_attention_heads": 8,
                    "num_hidden_layers": 18,
                    "num_key_value_heads": 1,
                    "vocab_size": 257216,
                },
            },
            2.51,
        ),
        (
            {
                "model_type": "qwen2_audio",
                "text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032},
            },
            7.75,
        ),
    ],
)
def test_sizes_that_a_part_leaves_out_are_those_of_its_class(tmp_path, whole, published_1e9):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(whole))
    assert load_network(str(path)).parameters / 1e9 == pytest.approx(published_1e9, rel=0.01)


def test_a_file_of_its_own_states_its_sizes(tmp_path):
    with pytest.raises(InputError, match="hidden_size or n_embd or d_model is missing"):
        load_network(str(config(tmp_path, hidden_size=None, hiden_size=4096)))


def test_a_language_config_is_the_language_model(tmp_path):
    text = DEEPSEEK_V3 | {"model_type": "deepseek_v2"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "deepseek_vl_v2", "language_config": text}))
    assert load_network(str(path)).parameters == networks()["deepseek_v3"].parameters


def test_layers_without_positions_stand_beside_their_types(tmp_path):
    smollm3 = {
        "model_type": "smollm3",
        "layer_types": ["full_attention"] * 32,
        "no_rope_layers": [1, 1, 1, 0] * 8,
    }
    found = load_network(str(config(tmp_path, **smollm3)))
    assert [(layer.attention.rotary, count) for layer, count in found.layers] == [(True, 24), (False, 8)]


def test_a_configuration_of_latent_attention_is_the_shipped_network(tmp_path):
    found, shipped = load_network(str(config(tmp_path, **DEEPSEEK_V3))), networks()["deepseek_v3"]
    assert (found.layers, found.hidden, found.vocab) == (shipped.layers, shipped.hidden, shipped.vocab)


@pytest.mark.parametrize(("changes", "billions"), [({}, 671.0), (KIMI_K2, 1026.4), (V2_LITE, 15.7)])
def test_parameters_of_latent_attention_are_the_published_ones(tmp_path, changes, billions):
    network = load_network(str(config(tmp_path, **(DEEPSEEK_V3 | changes))))
    assert network.parameters / 1e9 == pytest.approx(billions, rel=2e-3)


@pytest.mark.parametrize(
    ("changes", "billions", "active"),
    [
        (MIMO_V2, 309, 15),
        (LAGUNA, 33, 3),
        (HUNYUAN, 80, 13),
        (DEEPSEEK_V3 | KIMI_K2 | {"model_type": "kimi_k25"}, 1026, 32),
    ],
)
def test_parameters_of_networks_whose_layers_have_sizes_of_their_own(tmp_path, changes, billions, active):
    network = load_network(str(config(tmp_path, **changes)))
    assert network.parameters / 1e9 == pytest.approx(billions, rel=0.02)
    assert network.active_parameters / 1e9 == pytest.approx(active, rel=0.1)


def test_embeddings_narrower_than_the_stream_are_projected(tmp_path):
    network = load_network(str(config(tmp_path, **OPT_350M)))
    by_hand = 24 * (4 * 1024**2 + 2 * 1024 * 4096) + 50272 * 512 + 2 * 512 * 1024
    assert network.parameters == by_hand == pytest.approx(331.2e6, rel=0.02)  # its checkpoint has biases, positions
    made = {o.name: o for o in load_workload(f"{tmp_path}/net:phase=decode,batch=4,context=64").operators}
    assert made["embedding_projection"].shape == "4 x 1024 x 512 bf16"
    assert made["head_projection"].shape == "4 x 512 x 1024 bf16"
    assert made["logits"].shape == "4 x 50272 x 512 bf16"


@pytest.mark.parametrize("said", [{"model_type": "stablelm", "use_parallel_residual": True}, {"model_type": "gptj"}])
def test_attention_and_mlp_may_run_side_by_side(tmp_path, said):
    ((layer, _),) = load_network(str(config(tmp_path, **said))).layers
    assert layer.arrangement == "parallel"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"model_type": "qwen3_moe", "mlp_only_layers": 2}, "mlp_only_layers = 2 is not accepted; give a list of num"),
        ({"model_type": "llama4_text", "head_dim": 128, "moe_layers": "all"}, "moe_layers = 'all' is not accepted"),
        ({"model_type": "nemotron_h", "head_dim": 64, "layers_block_type": 7}, "layers_block_type = 7 is not accepted"),
    ],
)
def test_lists_of_layers_that_are_none_are_refused(tmp_path, said, sentence):
    with pytest.raises(InputError, match=sentence):
        load_network(str(config(tmp_path, **said)))


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"model_type": "minimax_m2", "num_key_value_heads": None}, "kv_heads", 8),
        ({"model_type": "gpt_bigcode", "num_key_value_heads": None}, "kv_heads", 1),
        ({"model_type": "ernie4_5"}, "head_dim", 128),
        ({"model_type": "qwen3_moe"}, "experts", 128),
        ({"model_type": "mixtral"}, "experts_per_token", 2),
    ],
)
def test_what_a_configuration_leaves_out_is_its_classes(tmp_path, said, field, value):
    assert sizes(load_network(str(config(tmp_path, **said))))[field] == value


def test_layers_that_slide_have_sizes_of_their_own(tmp_path):
    full, window, _ = (layer.attention for layer, _ in load_network(str(config(tmp_path, **MIMO_V2))).layers)
    assert (full.kv_heads, full.value_dim, full.sinks) == (4, 128, False)
    assert (window.kv_heads, window.value_dim, window.sinks, window.window) == (8, 128, True, 128)
    first, other, _ = (layer.attention for layer, _ in load_network(str(config(tmp_path, **LAGUNA))).layers)
    assert (first.heads, other.heads) == (48, 64)


def test_files_that_are_no_configuration_are_refused(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "twice.json").write_text('{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}')
    for name, sentence in (
        ("list.json", "holds list"),
        ("bad.json", "is not valid JSON"),
        ("none.json", "no such file"),
        ("twice.json", "twice.json: key 'vocab_size' stands twice; give it once"),
    ):
        with pytest.raises(InputError, match=sentence):
            load_network(str(tmp_path / name))


def test_a_configuration_may_mark_the_order_of_its_bytes(tmp_path):
    path = config(tmp_path)
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert load_network(str(path)).depth == 32


@pytest.mark.parametrize(
    ("changes", "billions"), [(MINIMAX_M2, 228.6), (DEVSTRAL, 23.57), (MINICPM3, 4.07), (AXK1, 519), (IQUEST, 39.8)]
)
def test_parameters_of_networks_that_need_their_name_alone(tmp_path, changes, billions):
    assert load_network(str(config(tmp_path, **changes))).parameters / 1e9 == pytest.approx(billions, rel=2e-3)


@pytest.mark.parametrize("kinds", [[0] * 62, [1, 0] * 31, "full"])
def test_minimax_with_another_kind_of_attention_is_refused(tmp_path, kinds):
    with pytest.raises(InputError, match="attn_type_list"):
        load_network(str(config(tmp_path, **(MINIMAX_M2 | {"attn_type_list": kinds}))))


def test_an_encoder_that_is_left_out_is_said(tmp_path):
    assert load_network(str(config(tmp_path))).title == "net"
    title = load_network(str(config(tmp_path, vision_config={"hidden_size": 1024}))).title
    assert title == "net (language model alone, without its vision encoder)"


def test_a_part_without_a_type_has_that_of_the_whole(tmp_path):
    text = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    found, shipped = load_network(str(path)), networks()["gemma_3_4b"]
    assert (found.layers, found.vocab, found.tied) == (shipped.layers, shipped.vocab, shipped.tied)
    path.write_text(json.dumps({"model_type": "llava", "text_config": text}))
    with pytest.raises(InputError, match="model_type = 'llava': this architecture is not covered"):
        load_network(str(path))


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"model_type": "gpt_oss", "sliding_window": 128}, {"window 128 + mixture": 16, "full + mixture": 16}),
        ({"model_type": "gemma2"}, {"window 4096 + dense": 16, "full + dense": 16}),
        ({"model_type": "llama4_text", "head_dim": 128}, {"chunk 8192 + mixture": 24, "full + mixture": 8}),
        (
            {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2},
            {"full + dense": 16, "full + mixture": 16},
        ),
        (
            DEEPSEEK_V3 | {"moe_layer_freq": 2},
            {"latent + dense": 3 + 29, "latent + mixture": 29},
        ),
        (
            {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 28},
            {"full + dense": 28, "window 4096 + dense": 4},
        ),
    ],
)
def test_kinds_of_layers_are_counted(tmp_path, changes, kinds):
    layers = load_network(str(config(tmp_path, **changes))).layers
    assert {layer.kind: count for layer, count in layers} == kinds
    assert len({layer.label for layer, _ in layers}) == len(layers)


TODAY = {
    "solar_open": (
        {
            "model_type": "solar_open",
            "vocab_size": 196608,
            "hidden_size": 4096,
            "moe_intermediate_size": 1280,
            "num_hidden_layers": 48,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "max_position_embeddings": 131072,
        },
        102.65,
    ),
    "cwm": (
        {
            "model_type": "cwm",
            "vocab_size": 128256,
            "hidden_size": 6144,
            "intermediate_size": 21504,
            "num_hidden_layers": 64,
            "num_attention_heads": 48,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "sliding_window": 8192,
            "max_position_embeddings": 131072,
        },
        32.58,
    ),
    "youtu": (
        {
            "model_type": "youtu",
            "tie_word_embeddings": True,
            "vocab_size": 128256,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "head_dim": 64,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "max_position_embeddings": 131072,
        },
        1.962,
    ),
    "mistral4": (
        {
            "model_type": "mistral4",
            "vocab_size": 131072,
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "moe_intermediate_size": 2048,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "head_dim": 128,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "num_experts_per_tok": 4,
            "first_k_dense_replace": 0,
            "kv_lora_rank": 256,
            "q_lora_rank": 1024,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 64,
            "v_head_dim": 128,
            "max_position_embeddings": 1048576,
        },
        119.0,
    ),
    "sarvam_mla": (
        {
            "model_type": "sarvam_mla",
            "vocab_size": 262144,
            "hidden_size": 4096,
            "intermediate_size": 16384,
            "moe_intermediate_size": 2048,
            "num_hidden_layers": 32,
            "num_attention_heads": 64,
            "num_key_value_heads": 64,
            "head_dim": 64,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "max_position_embeddings": 4096,
        },
        106.03,
    ),
    "sarvam_moe": (
        {
            "model_type": "sarvam_moe",
            "vocab_size": 262144,
            "hidden_size": 4096,
            "intermediate_size": 8192,
            "moe_intermediate_size": 1024,
            "num_hidden_layers": 19,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 64,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "max_position_embeddings": 131072,
            "use_qk_norm": True,
        },
        32.15,
    ),
    "hy_v3": (
        {
            "model_type": "hy_v3",
            "vocab_size": 120832,
            "hidden_size": 4096,
            "intermediate_size": 13312,
            "moe_intermediate_size": 1536,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_experts": 192,
            "num_shared_experts": 1,
            "num_experts_per_tok": 8,
            "max_position_embeddings": 131072,
            "mlp_layer_types": ["dense"] + 79 * ["sparse"],
        },
        295.03,
    ),
    "afmoe": (
        {
            "model_type": "afmoe",
            "vocab_size": 200192,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "moe_intermediate_size": 1408,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "head_dim": 128,
            "sliding_window": 1024,
            "num_experts": 64,
            "num_shared_experts": 2,
            "num_experts_per_tok": 6,
            "num_dense_layers": 1,
            "max_position_embeddings": 16384,
            "global_attn_every_n_layers": 4,
        },
        19.23,
    ),
    "exaone_moe": (
        {
            "model_type": "exaone_moe",
            "vocab_size": 102400,
            "hidden_size": 4096,
            "intermediate_size": 16384,
            "moe_intermediate_size": 1024,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "sliding_window": 4096,
            "num_experts": 64,
            "num_shared_experts": 1,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 1,
            "max_position_embeddings": 262144,
            "sliding_window_pattern": 4,
        },
        28.55,
    ),
}
"""Configurations as their classes in transformers 5.24 have them, and the parameters of these [1e9]."""


@pytest.mark.parametrize("name", TODAY)
def test_parameters_are_those_that_the_published_class_counts(tmp_path, name):
    said, billions = TODAY[name]
    assert load_network(str(config(tmp_path, **said))).parameters == pytest.approx(billions * 1e9, rel=0.001)
