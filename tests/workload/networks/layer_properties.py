"""What holds of every kind of layer, whatever its sizes."""

from dataclasses import replace

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from tests.workload.networks.test_step import STEP

BF16 = precision("x")


def at(phase, batch, tokens, hidden, gpus=1):
    queries = 1 if phase == "decode" else tokens
    step = replace(STEP, phase=phase, batch=batch, queries=queries, keys=tokens, hidden=hidden)
    return replace(step, gpus=gpus)


def work(layer, step):
    """Multiply-adds and bytes of a layer in all."""
    kernels = [operator.candidates[0].kernel for operator in layer.operators(step)]
    counts = [(k.fma, k.cold_bytes + k.warm_bytes + k.write_bytes) for k in kernels]
    assert np.isfinite(counts).all() and (np.array(counts) >= 0).all()
    return np.sum(counts, axis=0)


def assert_more_tokens_are_never_less_work(layer, hidden):
    for phase in ("prefill", "decode"):
        works = [work(layer, at(phase, batch, tokens, hidden)) for batch, tokens in ((1, 64), (2, 64), (2, 9000))]
        assert (np.diff(works, axis=0) >= 0).all(), phase


def assert_kept_grows_with_tokens_and_never_with_gpus(layer, hidden):
    kept = [layer.attention.cache_bytes(tokens, BF16, 1) for tokens in (0, 1, 100, 10_000, 1_000_000)]
    assert np.all(np.diff(kept) >= 0)
    shared = [layer.attention.cache_bytes(10_000, BF16, gpus) for gpus in (1, 2, 4, 8)]
    assert np.all(np.diff(shared) <= 0)


def assert_gpus_that_share_a_layer_do_its_work_together(layer, hidden):
    for _, block in layer.blocks:
        try:
            block.check(8, "w", "a network")
        except InputError:
            pytest.skip("its heads or columns are no multiple of 8")
    alone, shared = (work(layer, at("decode", 4, 4096, hidden, gpus))[0] for gpus in (1, 8))
    assert alone / 8 <= shared <= alone
    parameters = [layer.parameters(hidden, gpus) for gpus in (1, 8)]
    assert parameters[0] <= parameters[1]
    assert layer.active_parameters(hidden) <= parameters[0]


PROPERTIES = (
    assert_more_tokens_are_never_less_work,
    assert_kept_grows_with_tokens_and_never_with_gpus,
    assert_gpus_that_share_a_layer_do_its_work_together,
)
