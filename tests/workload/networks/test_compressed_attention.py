"""Attention to a window and to compressed keys, as V4-Flash has it: parameters, what is kept, what is attended."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.compressed_attention import CompressedAttention
from dse.workload.networks.compressor import Compressor

DENSE = CompressedAttention(64, 512, 1024, 64, 128, 8, 1024, 128)
SPARSE = replace(DENSE, ratio=4, index_heads=64, index_dim=128, index_topk=512)
WINDOW = replace(DENSE, ratio=0)
BF16 = precision("x")


def test_every_gpu_has_the_narrow_projections_and_the_indexer():
    heads = 64 * 512 * (1024 + 1024) + 8 * 1024 * 4096
    down, compressor = 4096 * (1024 + 512), 4096 * 2 * 512
    index = 1024 * 64 * 128 + 4096 * 64 + 4096 * 4 * 128
    for gpus in (1, 8):
        assert WINDOW.parameters(4096, gpus) == heads + gpus * down
        assert DENSE.parameters(4096, gpus) == heads + gpus * (down + compressor)
        assert SPARSE.parameters(4096, gpus) == heads + gpus * (down + 2 * compressor + index)


def test_a_window_and_compressed_keys_are_kept_and_what_waits_to_be_compressed():
    assert WINDOW.cache_bytes(10_000, BF16, 1) == 128 * 512 * 2
    waiting = 128 * 2 * 512 * 4
    assert DENSE.cache_bytes(0, BF16, 8) == waiting
    assert DENSE.cache_bytes(12_800, BF16, 8) == (128 + 100) * 512 * 2 + waiting
    waiting = 8 * 4 * (512 + 128) * 4
    assert SPARSE.cache_bytes(12_800, BF16, 8) == (128 + 3200) * 512 * 2 + 3200 * 132 + waiting
    assert SPARSE.cache_bytes(12_800, precision("x", kv="fp8"), 8) == (128 + 3200) * 512 + 3200 * 132 + waiting


def test_a_token_attends_its_window_and_the_best_or_all_keys():
    assert WINDOW.attended(1, 100) == 100
    assert WINDOW.attended(1, 10_000) == 128
    assert DENSE.attended(1, 12_800) == 128 + 100
    assert SPARSE.attended(1, 1024) == 128 + 256
    assert SPARSE.attended(1, 12_800) == 128 + 512
    seen = sum(min(p, 128) + min(p / 4, 512) for p in range(1, 4097)) / 4096
    assert SPARSE.attended(4096, 4096) == pytest.approx(seen, rel=1e-12)


@pytest.mark.parametrize(("gpus", "why"), [(3, "64 attention heads"), (16, "8 groups of heads")])
def test_gpus_that_cannot_share_heads_or_groups_are_refused(gpus, why):
    with pytest.raises(InputError, match=f"tp={gpus} does not divide the {why} of V4"):
        DENSE.check(gpus, "w", "V4")


def test_stretches_of_little_compression_overlap():
    assert (Compressor(4, 512).columns, Compressor(128, 512).columns) == (2048, 1024)
