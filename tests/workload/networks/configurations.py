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


LFM2 = {
    "model_type": "lfm2",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": None,
    "block_ff_dim": 12288,
    "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
    "conv_L_cache": 3,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "vocab_size": 65536,
    "tie_word_embeddings": None,
}
"""That of LiquidAI/LFM2-1.2B."""

LFM2_MOE = LFM2 | {
    "model_type": "lfm2_moe",
    "num_hidden_layers": 24,
    "block_ff_dim": None,
    "block_auto_adjust_ff_dim": None,
    "intermediate_size": 7168,
    "moe_intermediate_size": 1792,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "num_dense_layers": 2,
    "full_attn_idxs": None,
    "layer_types": ["full_attention" if layer in (2, 6, 10, 14, 18, 21) else "conv" for layer in range(24)],
}
"""That of LiquidAI/LFM2-8B-A1B."""

KIMI_LINEAR = {
    "model_type": "kimi_linear",
    "num_hidden_layers": 27,
    "hidden_size": 2304,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 9216,
    "vocab_size": 163840,
    "q_lora_rank": NULL,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "moe_intermediate_size": 1024,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "kda_layers": [layer for layer in range(1, 27) if layer % 4],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
}
"""That of moonshotai/Kimi-Linear-48B-A3B-Instruct."""

MINIMAX_TEXT_01 = {
    "model_type": "minimax_text_01",
    "num_hidden_layers": 80,
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 9216,
    "vocab_size": 200064,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
    "shared_intermediate_size": 0,
    "attn_type_list": 10 * [0, 0, 0, 0, 0, 0, 0, 1],
}
"""That of MiniMaxAI/MiniMax-Text-01."""

FALCON_H1 = {
    "model_type": "falcon_h1",
    "num_hidden_layers": 72,
    "hidden_size": 5120,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 21504,
    "vocab_size": 261120,
    "mamba_d_ssm": 4096,
    "mamba_n_heads": 32,
    "mamba_d_head": 128,
    "mamba_d_state": 256,
    "mamba_n_groups": 2,
    "mamba_d_conv": 4,
    "mamba_chunk_size": 128,
}
"""That of tiiuae/Falcon-H1-34B-Instruct."""

LONGCAT = {
    "model_type": "longcat_flash",
    "num_hidden_layers": None,
    "num_layers": 28,
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "num_key_value_heads": None,
    "intermediate_size": None,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "vocab_size": 131072,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
}
"""That of meituan-longcat/LongCat-Flash-Chat."""

RING = {
    "model_type": "bailing_moe_linear",
    "num_hidden_layers": 20,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 5120,
    "vocab_size": 157184,
    "num_experts": 256,
    "num_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "first_k_dense_replace": 1,
    "layer_group_size": 5,
}
"""That of inclusionAI/Ring-mini-linear-2.0."""

MINICPM3 = {
    "model_type": "minicpm3",
    "num_hidden_layers": 62,
    "hidden_size": 2560,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "intermediate_size": 6400,
    "vocab_size": 73448,
    "q_lora_rank": 768,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "tie_word_embeddings": None,
}
"""That of openbmb/MiniCPM3-4B."""

AXK1 = {
    "model_type": "axk1",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "intermediate_size": 18432,
    "vocab_size": 163840,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 192,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 1,
}
"""That of skt/A.X-K1."""

IQUEST = {
    "model_type": "iquestcoder",
    "num_hidden_layers": 80,
    "hidden_size": 5120,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 27648,
    "vocab_size": 76800,
}
"""That of IQuestLab/IQuest-Coder-V1-40B-Instruct."""
