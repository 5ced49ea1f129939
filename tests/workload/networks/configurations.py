"""Hugging Face configurations for the tests of networks."""

import json

NULL = object()
"""Stands for null in a configuration."""

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
"""That of a Llama 3 of 8B."""


DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "vocab_size": 129280,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
}
"""That of deepseek-ai/DeepSeek-V3."""

MIMO_V2 = {
    "model_type": "mimo_v2_flash",
    "num_hidden_layers": 48,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 192,
    "v_head_dim": 128,
    "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 8,
    "swa_head_dim": 192,
    "swa_v_head_dim": 128,
    "add_swa_attention_sink_bias": True,
    "intermediate_size": 16384,
    "vocab_size": 152576,
    "sliding_window": 128,
    "hybrid_layer_pattern": [0, 1, 1, 1, 1] + 7 * [0, 1, 1, 1, 1, 1] + [0],
    "moe_layer_freq": [0] + 47 * [1],
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
}
"""That of XiaomiMiMo/MiMo-V2-Flash: 309 and 15 B."""

LAGUNA = {
    "model_type": "laguna",
    "num_hidden_layers": 40,
    "hidden_size": 2048,
    "num_attention_heads": 48,
    "num_attention_heads_per_layer": 10 * [48, 64, 64, 64],
    "num_key_value_heads": 8,
    "head_dim": 128,
    "gating": True,
    "intermediate_size": 8192,
    "vocab_size": 100352,
    "sliding_window": 512,
    "layer_types": 10 * ["full_attention", *(3 * ["sliding_attention"])],
    "mlp_layer_types": ["dense", *(39 * ["sparse"])],
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
"""That of poolside/Laguna-XS.2: 33 and 3 B."""

HUNYUAN = {
    "model_type": "hunyuan_v1_moe",
    "num_hidden_layers": 32,
    "head_dim": 128,
    "intermediate_size": 3072,
    "moe_intermediate_size": 32 * [3072],
    "num_experts": 64,
    "moe_topk": 32 * [8],
    "num_shared_expert": 32 * [1],
    "vocab_size": 128167,
    "tie_word_embeddings": True,
}
"""What tencent/Hunyuan-A13B-Instruct changes of a Llama: 80 and 13 B."""

KIMI_K2 = {
    "model_type": "kimi_k2",
    "num_attention_heads": 64,
    "vocab_size": 163840,
    "first_k_dense_replace": 1,
    "n_routed_experts": 384,
}
"""What moonshotai/Kimi-K2-Instruct changes of DeepSeek-V3."""

V2_LITE = {
    "model_type": "deepseek_v2",
    "num_hidden_layers": 27,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "intermediate_size": 10944,
    "vocab_size": 102400,
    "q_lora_rank": NULL,
    "first_k_dense_replace": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1408,
}
"""What deepseek-ai/DeepSeek-V2-Lite changes of DeepSeek-V3."""

OPT_350M = {
    "model_type": "opt",
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": None,
    "intermediate_size": None,
    "ffn_dim": 4096,
    "word_embed_proj_dim": 512,
    "vocab_size": 50272,
    "tie_word_embeddings": True,
    "do_layer_norm_before": False,
}
"""That of facebook/opt-350m."""

MINIMAX_M2 = {
    "model_type": "minimax_m2",
    "num_hidden_layers": 62,
    "hidden_size": 3072,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 1536,
    "vocab_size": 200064,
    "num_experts_per_tok": 8,
    "num_local_experts": 256,
    "attn_type_list": [1] * 62,
}
"""That of MiniMaxAI/MiniMax-M2.5, whose layers all attend to all tokens."""

DEVSTRAL = {
    "model_type": "ministral3",
    "num_hidden_layers": 40,
    "hidden_size": 5120,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 32768,
    "vocab_size": 131072,
}
"""The language model of mistralai/Devstral-Small-2-24B."""


def config(tmp_path, **changes):
    """Path of a config.json: LLAMA with changes (None removes a key, NULL is null)."""
    path = tmp_path / "net" / "config.json"
    path.parent.mkdir(exist_ok=True)
    given = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    path.write_text(json.dumps({key: None if value is NULL else value for key, value in given.items()}))
    return path
