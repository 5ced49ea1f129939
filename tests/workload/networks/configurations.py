"""Hugging Face configurations for the tests of networks."""

import json

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


def config(tmp_path, **changes):
    """Path of a config.json: LLAMA with changes (None removes a key)."""
    path = tmp_path / "net" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({k: v for k, v in (LLAMA | changes).items() if v is not None}))
    return path
