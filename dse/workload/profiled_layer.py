"""How long a whole layer of a network runs, roughly: where operators are timed in sequence, it fills a reading.

No more than tenths are asked of it: a board's governor forgets over milliseconds, and the layers of one network take
0.1 to 60 of them. Attention is not in it: the profiler that needs this (vidur's) puts random numbers in its place.
"""

from collections.abc import Mapping
from typing import Any

from dse.hardware.peak import VECTOR_DTYPES, peak_tflops
from dse.workload.dtypes import element_bytes
from dse.workload.harness import Harness
from dse.workload.network import Network

PEAK_SHARE = 0.75
BANDWIDTH_SHARE = 0.8
"""Shares of the sheet's peak and bandwidth that products reach: assumed, about the means of measured ones."""

KERNEL_US = 2.0
"""Of a kernel that has nothing to do [us]: launched while the one before runs."""

VECTOR_KERNELS = 8
"""Kernels of a layer that are no products: two norms, two sums, rotation, activation, embedding, random numbers."""


def reading_us(row: Any, harness: Harness, numbers: Mapping[str, Any]) -> float:
    """Return how long the layers run that keep the board busy up to a product's reading [us]; 0 where the harness times
    no layers or the row's network is not known.

    ``numbers``: attributes of the GPU. Vector kernels draw too few watts for their readings to depend on it.
    """
    network = harness.layered(row)
    if network is None:
        return 0.0
    return harness.layers * layer_us(network, float(row.m), _gpus(row), str(row.dtype), numbers)


def _gpus(row: Any) -> float:
    """GPUs that share the network, 1 where the row does not say."""
    said = float(getattr(row, "tp", 1.0) or 1.0)
    return said if said > 0 else 1.0


def layer_us(network: Network, tokens: float, gpus: float, dtype: str, numbers: Mapping[str, Any]) -> float:
    """Return the time of one GPU's share of a layer without its attention [us].

    ``tokens`` in the pass; ``gpus`` [1] that share the network's heads and columns; ``numbers``: attributes of the GPU.
    """
    unit = "vector" if dtype in VECTOR_DTYPES else "tensor"
    flops = PEAK_SHARE * 1e6 * peak_tflops(numbers, unit, dtype)  # a microsecond
    bandwidth = BANDWIDTH_SHARE * 1e3 * numbers["dram_bandwidth_gbs"]  # bytes a microsecond
    size, hidden = element_bytes(dtype), float(network.hidden)
    queries = network.heads * network.head_dim / gpus
    projected = queries + 2.0 * network.kv_heads * network.head_dim / gpus
    gates, columns = 2.0 if network.gated else 1.0, network.ffn / gpus
    us = VECTOR_KERNELS * KERNEL_US
    for n, k in ((projected, hidden), (hidden, queries), (gates * columns, hidden), (hidden, columns)):
        moved = size * (tokens * n + tokens * k + n * k)
        us += max(2.0 * tokens * n * k / flops, moved / bandwidth) + KERNEL_US
    # Two norms and an embedding read and write the stream, two sums read two and write one; queries and keys turn, and
    # as many random numbers as queries are written.
    vectors = 12.0 * hidden + 2.0 * projected + queries + (gates + 1.0) * columns
    return us + size * tokens * vectors / bandwidth
