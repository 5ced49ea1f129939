"""Activities against counts made by hand, and what every kernel's activity keeps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.presets import load_sheet
from dse.power.activity import activity, with_still_operands
from dse.timing.amali import Amali
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from tests.timing.designs import drawn_kernels, single

HOPPER = (9.0, 9.0)


def counted(kernel, preset="h200"):
    """Activity of one kernel on a preset, as plain floats."""
    gpu = load_sheet(preset).record()
    return jax.tree.map(float, activity(kernel, Amali()(kernel, gpu), gpu))


def test_a_gemm_by_hand():
    operator = gemm_operator("g", Gemm(1024, 1000, 4096), HOPPER)
    label = next(c.label for c in operator.candidates if "128x128" in c.label and "split" not in c.label)
    kernel = single(operator, label)
    found = counted(kernel)
    assert found.tensor_fma == pytest.approx(1024 * 1000 * 4096)
    assert found.padding_fma == pytest.approx(1024 * 24 * 4096, rel=1e-5)  # 8 tiles of 128 columns hold 1000
    assert found.softmax_fma == found.sfu == found.link_bytes == 0
    assert found.busy == pytest.approx(64 / 132)  # 8 x 8 tiles on 132 SMs
    operands = 64 * (128 + 128) * 4096 * 2  # every tile loads its rows and columns
    results = 64 * 128 * 128 * 2
    assert found.l1_bytes == pytest.approx(operands + results, rel=1e-5)
    assert found.l2_bytes - found.dram_bytes == pytest.approx(float(kernel.l2_bytes))
    assert found.clock_ghz == pytest.approx(1.83)


def test_attention_computes_probabilities():
    attention = Attention(4, 32, 8, 128, 2048, 2048)
    kernel = attention_operator("a", attention, HOPPER).candidates[0].kernel.as_arrays()
    found = counted(kernel)
    assert found.tensor_fma == 0
    # Diagonal blocks are computed whole: scores of queries and keys, and probabilities that are zeros.
    masked = found.softmax_fma - attention.fma
    assert 0 < masked < 0.1 * attention.fma
    assert found.padding_fma == pytest.approx(masked, rel=0.02)
    # An exponential for each score: FMAs / (2 head_dim), and one a row in the epilogue.
    assert found.sfu == pytest.approx((found.softmax_fma + found.padding_fma) / 256, rel=0.02)


def test_scores_that_a_window_removes_are_products_of_queries_and_keys():
    attention = Attention(4, 32, 32, 128, 2048, 2048, window=128)
    kernel = attention_operator("a", attention, HOPPER).candidates[0].kernel.as_arrays()
    found = counted(kernel)
    keys = (found.softmax_fma + found.padding_fma) / (4 * 32 * 2048 * 256)  # that a query meets in the mean
    assert keys > 1.5 * attention.visible
    assert found.softmax_fma == pytest.approx(4 * 32 * 2048 * 128 * (keys + attention.visible), rel=1e-5)
    assert found.padding_fma == pytest.approx(4 * 32 * 2048 * 128 * (keys - attention.visible), rel=1e-5)


@pytest.mark.parametrize(
    "attention",
    [
        Attention(4, 8, 8, 128, 1000, 1000, causal=False),
        Attention(4, 8, 8, 128, 1, 1000),
        Attention(4, 8, 1, 576, 64, 1000, v_dim=512, latent=True, gathered=256),
    ],
    ids=["encoder", "decode", "lists of neighbours"],
)
def test_keys_past_the_last_are_no_masked_scores(attention):
    candidates = attention_operator("a", attention, HOPPER).candidates
    assert all(candidate.kernel.masked_fma == 0 for candidate in candidates)


def test_products_of_operands_that_do_not_change_are_like_padding():
    attention = attention_operator("a", Attention(4, 32, 8, 128, 2048, 2048), HOPPER).candidates[0].kernel.as_arrays()
    found = counted(attention)
    still = with_still_operands(found, 0.75, 1.0)
    assert still.softmax_fma == pytest.approx(0.25 * found.softmax_fma)
    assert still.padding_fma == pytest.approx(found.padding_fma + 0.75 * found.softmax_fma)
    product = counted(gemm_operator("g", Gemm(1024, 1000, 4096), HOPPER).candidates[0].kernel.as_arrays())
    assert with_still_operands(product, 0.75, 0.0) == product
    assert with_still_operands(product, 0.0, 1.0).tensor_fma == 0


def test_decode_pads_its_tile_of_queries():
    attention = Attention(16, 32, 8, 128, 1, 4096)
    candidates = attention_operator("a", attention, HOPPER).candidates
    found = counted(next(c for c in candidates if "64x128" in c.label).kernel.as_arrays())
    assert found.padding_fma / found.softmax_fma == pytest.approx(64 / 4 - 1)  # 4 heads share 64 rows


def test_elementwise_uses_no_tensor_core():
    kernel = vector_operator("e", "div", 10**4, 10**4, "bf16", "pytorch_vector").candidates[0].kernel.as_arrays()
    found = counted(kernel)
    assert found.tensor_fma == found.softmax_fma == found.padding_fma == 0
    assert found.fp32 > 4e8
    assert found.sfu == pytest.approx(1e8, rel=0.01)
    assert found.dram_bytes == pytest.approx(6e8, rel=0.01)
    assert found.register_bytes == pytest.approx(
        16 * (found.fp32 + found.int32 + found.sfu) + found.shared_bytes, rel=1e-5
    )


@pytest.mark.parametrize("preset", ["h100_sxm", "a100_sxm_80gb", "b200"])
def test_every_count_is_finite_and_not_negative(preset):
    _, kernels = drawn_kernels(np.random.default_rng(1))
    gpu = load_sheet(preset).record()
    model = Amali()
    batch = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), kernels)
    found = jax.jit(jax.vmap(lambda kernel: activity(kernel, model(kernel, gpu), gpu)))(batch)
    for name, values in found._asdict().items():
        assert np.isfinite(values).all() and (np.asarray(values) >= 0).all(), name
    assert (np.asarray(found.nanoseconds) >= 1).all() and (np.asarray(found.busy) <= 1).all()
    executed = found.tensor_fma + found.softmax_fma + found.padding_fma
    stated = batch.per_warp("tensor_fma") * batch.warps * batch.ctas
    np.testing.assert_allclose(executed, stated, rtol=1e-5)
