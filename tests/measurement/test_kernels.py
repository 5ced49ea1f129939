"""The measured operators as JAX functions compute what their names say."""

import jax
import jax.numpy as jnp

from dse.measurement.kernels import VECTOR, measured
from dse.measurement.tasks import Task


def test_vector_operators_are_what_their_names_say():
    x, y = jax.random.normal(jax.random.key(1), (2, 4, 8))
    norm = x / jnp.sqrt((x * x).mean(-1, keepdims=True))
    assert jnp.allclose(VECTOR["rmsnorm"](x), norm, atol=1e-5)
    total, normed = VECTOR["add_rmsnorm"](x, y)
    assert jnp.allclose(total, x + y)
    assert jnp.allclose(normed, VECTOR["rmsnorm"](x + y))
    assert jnp.allclose(VECTOR["silu_and_mul"](x, y), x / (1 + jnp.exp(-x)) * y, atol=1e-5)
    assert jnp.allclose(VECTOR["layernorm"](x).std(-1), 1, atol=1e-3)
    assert jnp.allclose(VECTOR["softmax"](x).sum(-1), 1)


def test_a_product_reads_its_weights_from_the_second_operand():
    result = measured(Task("gemm", "gemm", "bf16", {"m": 8, "n": 32, "k": 64}))
    assert (result.shapes, result.weights) == (((8, 64), (64, 32)), (False, True))
    assert result.operand_bytes() == [8 * 64 * 2, 64 * 32 * 2]
    assert result.out_bytes() == 8 * 32 * 2


def test_a_residual_norm_reads_two_and_writes_two():
    result = measured(Task("vector", "add_rmsnorm", "fp32", {"rows": 8, "cols": 64}))
    assert result.operand_bytes() == [8 * 64 * 4] * 2
    assert result.out_bytes() == 2 * 8 * 64 * 4
    assert result.weights == (False, False)


def test_a_decode_s_token_sees_every_key_and_a_prompt_s_only_those_before():
    shape = {"batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 4, "seq_kv": 3, "causal": 1}
    keys = jnp.zeros((1, 3, 1, 4))  # all alike: each that is seen has the same weight
    values = jnp.arange(3.0).reshape(1, 3, 1, 1) * jnp.ones((1, 3, 1, 4))
    decode = measured(Task("attention", "attn_decode", "fp32", shape | {"seq_q": 1}))
    assert jnp.allclose(decode.call(jnp.ones((1, 1, 2, 4)), keys, values), 1.0)
    prefill = measured(Task("attention", "attn_prefill", "fp32", shape | {"seq_q": 3}))
    means = prefill.call(jnp.ones((1, 3, 2, 4)), keys, values)
    assert jnp.allclose(means[0, :, 0, 0], jnp.array([0.0, 0.5, 1.0]))


def test_what_xla_makes_of_attention_has_a_name_of_its_own():
    task = Task(
        "attention",
        "attn_decode",
        "bf16",
        {"batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 4, "seq_q": 1, "seq_kv": 3, "causal": 1},
    )
    assert measured(task).op == "attn_decode_xla"
    assert measured(task, "cudnn").op == "attn_decode"
