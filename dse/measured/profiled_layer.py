"""What a board does until a product of a profiled network is read: whole layers of the network run, one after another.

How long they run and how much of a product's watts they draw say what the board's power limit has done by then
(:mod:`dse.measured.throttling`). No more than tenths are asked of either: a governor forgets over milliseconds, and the
layers of one network take 0.1 to 60 of them. Attention is not in it: the profiler that needs this (vidur's) puts random
numbers in its place.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dse.base.constants import constant
from dse.hardware.data_types import VECTOR_DTYPES, element_bytes
from dse.hardware.peak import peak_tflops
from dse.measured.protocol import Protocol
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.mlp_kinds import Dense
from dse.workload.networks.network import Network

PEAK_SHARE = constant("profiled_peak_share")
BANDWIDTH_SHARE = constant("profiled_bandwidth_share")
"""Shares of the sheet's peak and bandwidth that products reach: assumed, about the means of measured ones."""

KERNEL_US = constant("profiled_kernel_us")
"""Of a kernel that has nothing to do [us]: launched while the one before runs."""

VECTOR_KERNELS = int(constant("profiled_vector_kernels"))
"""Kernels of a layer that are no products: two norms, two sums, rotation, activation, embedding, random numbers."""

ZEROS_WATTS = constant("zeros_watts_share")
VECTOR_WATTS = constant("vector_watts_share")
IDLE_WATTS = constant("idle_watts_share")
"""Watts of a product of zeros, of a vector kernel and of a board that waits, over those of a product of random numbers.
The first: inputs save an A100 PCIe up to 38 % (Gregersen, Patel, Choukse, Input-Dependent Power Usage in GPUs, 2024),
as 0.35 of the switching would by a fit of board power (docs/model/operators.md 6); the others are assumed."""


class Reading(NamedTuple):
    """What goes before a product's reading: the board is ``busy_us`` [us] and draws ``drawn`` [1] of the product's own
    watts in the mean."""

    busy_us: float
    drawn: float


OWN = Reading(0.0, 1.0)
"""The product alone."""


class Layer(NamedTuple):
    """Times [us] of one GPU's share of a layer: its products, those of zeros among them, and its vector kernels."""

    products_us: float
    zeros_us: float
    vectors_us: float

    @property
    def us(self) -> float:
        """All of it [us]."""
        return self.products_us + self.vectors_us

    @property
    def drawn(self) -> float:
        """Its mean watts over those of a product of random numbers [1]."""
        saved = (1.0 - ZEROS_WATTS) * self.zeros_us + (1.0 - VECTOR_WATTS) * self.vectors_us
        return 1.0 - saved / self.us


def reading(row: Any, protocol: Protocol, numbers: Mapping[str, Any]) -> Reading:
    """Return what layers do before a product's reading; OWN where the protocol times no layers or the row's network is
    not known. Where the host takes longer to launch a layer than the GPU to run it, the board waits meanwhile.

    ``numbers``: attributes of the GPU. Vector kernels draw too few watts for their readings to depend on it.
    """
    network = protocol.layered(row)
    if network is None:
        return OWN
    one = layer(network, float(row.m), _gpus(row), str(row.dtype), numbers)
    passes_us = max(one.us, protocol.layer_host_us)
    return Reading(protocol.layers * passes_us, IDLE_WATTS + (one.drawn - IDLE_WATTS) * one.us / passes_us)


def _gpus(row: Any) -> float:
    """GPUs that share the network, 1 where the row does not say."""
    said = float(getattr(row, "tp", 1.0) or 1.0)
    return said if said > 0 else 1.0


def layer(network: Network, tokens: float, gpus: float, dtype: str, numbers: Mapping[str, Any]) -> Layer:
    """Return one GPU's share of a layer without its attention.

    ``tokens`` in the pass; ``gpus`` [1] that share the network's heads and columns; ``numbers``: attributes of the GPU.
    A gated network of small random weights multiplies zeros last: the product of its activation and its gate is smaller
    than any number of 16 bits (vidur's weights are within a thousandth of 0, vidur/profiling/mlp/mlp_wrapper.py).
    """
    unit = "vector" if dtype in VECTOR_DTYPES else "tensor"
    flops = PEAK_SHARE * 1e6 * peak_tflops(numbers, unit, dtype)  # a microsecond
    bandwidth = BANDWIDTH_SHARE * 1e3 * numbers["dram_bandwidth_gbs"]  # bytes a microsecond
    attention, mlp = network.shared(GroupedQueryAttention), network.shared(Dense)
    assert attention is not None and mlp is not None, "Protocol.layered gives no other network"
    size, hidden = element_bytes(dtype), float(network.hidden)
    queries = attention.heads * attention.head_dim / gpus
    projected = queries + 2.0 * attention.kv_heads * attention.head_dim / gpus
    up, columns = mlp.columns(gpus), mlp.ffn / gpus
    products = []
    for n, k in ((projected, hidden), (hidden, queries), (up, hidden), (hidden, columns)):
        moved = size * (tokens * n + tokens * k + n * k)
        products.append(max(2.0 * tokens * n * k / flops, moved / bandwidth) + KERNEL_US)
    # Two norms and an embedding read and write the stream, two sums read two and write one; queries and keys turn, and
    # as many random numbers as queries are written.
    vectors = 12.0 * hidden + 2.0 * projected + queries + up + columns
    zeros = products[-1] if mlp.gated else 0.0
    return Layer(sum(products), zeros, VECTOR_KERNELS * KERNEL_US + size * tokens * vectors / bandwidth)
