"""Forward passes as PyTorch runs them: which kernels, how often, and how much arithmetic."""

import pytest

from dse.base.errors import InputError
from dse.workload.networks.eager_forward import find_forward, forward_operators, forwards


def arithmetic(operators):
    """Multiply-adds of all products."""
    return sum(o.repeats * float(o.candidates[0].kernel.fma) for o in operators if o.kind == "gemm")


@pytest.mark.parametrize("network", forwards().values(), ids=list(forwards()))
def test_the_products_are_the_networks(network):
    batch, tokens = 2, 512  # a multiple of every tile
    operators = forward_operators(network, batch, tokens, 8.0, fused=False)
    ((layer, count),) = network.layers
    each = 4 * network.hidden**2 + 2 * network.hidden * layer.ffn + 2 * tokens * network.hidden
    logits = 0 if layer.encoder else network.hidden * network.vocab
    wanted = batch * tokens * (count * each + logits)
    assert arithmetic(operators) == pytest.approx(wanted, rel=0.02)
    assert arithmetic(forward_operators(network, batch, tokens, 8.0, fused=True)) == arithmetic(operators)


def test_a_narrow_type_computes_on_tensor_cores_and_moves_half_the_bytes():
    wide, narrow = (forward_operators(find_forward("gpt2"), 2, 512, 8.0, False, dtype) for dtype in ("fp32", "bf16"))
    assert [o.name for o in wide] == [o.name for o in narrow]
    for before, after in zip(wide, narrow, strict=True):
        first, second = (o.candidates[0].kernel for o in (before, after))
        if before.kind == "gemm":
            assert float(first.loop.tensor_fma) == 0 < float(second.loop.tensor_fma)
        else:
            assert float(second.write_bytes) == float(first.write_bytes) / 2


def launches(name, fused):
    network = find_forward(name)
    return sum(o.repeats for o in forward_operators(network, 1, 128, 8.0, fused)) / network.layers[0][1]


def test_a_compiler_saves_launches():
    assert launches("bert_large", True) == pytest.approx(16)  # six products, and what stands between them
    assert launches("bert_large", False) == pytest.approx(20)
    assert launches("gpt2_large", False) - launches("gpt2_large", True) == pytest.approx(11)  # seven of gelu_new's


def test_an_unknown_network_is_refused():
    with pytest.raises(InputError, match="no forward pass is known of 'bert_larg'; did you mean 'bert_large'"):
        find_forward("bert_larg")
