"""What attention asks for: requests, heads, queries and keys, and the bytes and multiply-adds that follow."""

from dataclasses import dataclass

from dse.hardware.data_types import BITS, element_bytes
from dse.workload.operator import FOREVER


@dataclass(frozen=True)
class Attention:
    """``batch`` requests, ``heads`` query heads on ``kv_heads`` key-value heads of ``head_dim``, all per GPU.

    ``queries`` new tokens a request attend ``keys`` tokens (those before them and themselves); ``causal`` masks later
    ones. ``dtype`` of the products, ``kv`` of the cache. ``kv_distance`` [B]: bytes touched since the keys were
    written or last read; ``q_distance`` since the queries were; ``out_distance`` until the result's buffer is reused.
    With a ``window`` a causal query attends only that many tokens (0: all), with a ``chunk`` only those of its own
    stretch of so many (0: all). ``sinks``: every head's softmax has one more term, which no key stands for.
    ``softcap``: scores pass a tanh. ``writes_cache``: a kernel that writes the
    new keys and values into the cache belongs to it. ``decoding``: a single query continues an answer, else it is a
    prompt of one token, which some libraries give to another kernel. ``v_dim`` of the values' heads (0: as the keys').
    ``written_dim``: elements of a token that the cache takes, where keys and values were made of a latent, which alone
    is kept (0: those of all key-value heads). ``gathered``: tokens that each query attends by a list of its own, no two
    the same, so that it shares no reads with others (0: it has none); where fewer are before it, the rest of its list
    is masked (FlashMLA, sparse prefill). ``latent``: the values are a slice of the keys, so that one read serves
    both, as of multi-head latent attention with its up-projections absorbed (DeepSeek-V2, 2.1.2). Raises ValueError
    when there are fewer keys than queries, or values that are no slice of their keys.
    """

    batch: float
    heads: int
    kv_heads: int
    head_dim: int
    queries: float
    keys: float
    causal: bool = True
    dtype: str = "bf16"
    kv: str = "bf16"
    q_distance: float = FOREVER
    kv_distance: float = FOREVER
    out_distance: float = FOREVER
    window: int = 0
    writes_cache: bool = False
    decoding: bool = True
    v_dim: int = 0
    latent: bool = False
    chunk: int = 0
    sinks: bool = False
    softcap: bool = False
    written_dim: int = 0
    gathered: int = 0

    def __post_init__(self) -> None:
        if self.latent and self.value_dim > self.head_dim:
            raise ValueError(f"values of {self.value_dim} elements are no slice of keys of {self.head_dim}")
        if self.keys < self.queries:
            raise ValueError(f"{self.queries:g} queries attend only {self.keys:g} keys; keys count the queries' own")

    @property
    def prefix(self) -> float:
        """Keys before the first query's own."""
        return self.keys - self.queries

    @property
    def visible(self) -> float:
        """Keys that a query attends, averaged over the queries."""
        if not self.causal:
            return self.keys
        if self.chunk:
            return (_pairs(self.keys, self.chunk) - _pairs(self.prefix, self.chunk)) / self.queries
        window = self.window or self.gathered or self.keys
        growing = min(max(window - self.prefix, 0.0), self.queries)  # queries that still see every key before them
        seen = growing * (2 * self.prefix + growing + 1) / 2 + (self.queries - growing) * window
        return seen / self.queries

    @property
    def result(self) -> str:
        """Type of the result: 16 bits where the products' operands have fewer."""
        return self.dtype if BITS[self.dtype] >= 16 else "bf16"

    @property
    def value_dim(self) -> int:
        """Elements of a value's head."""
        return self.v_dim or self.head_dim

    @property
    def both_dims(self) -> int:
        """Elements of a key's and a value's head: multiply-adds of a query and a key in both products."""
        return self.head_dim + self.value_dim

    @property
    def of_latent(self) -> bool:
        """Whether it is that of a network of latent attention: over the latent, or with values of another size."""
        return self.latent or self.value_dim != self.head_dim

    @property
    def narrow(self) -> bool:
        """Whether the cache has fewer bits than the queries."""
        return BITS[self.kv] < BITS[self.dtype]

    @property
    def cached_dim(self) -> int:
        """Elements that are kept of a token for a key-value head."""
        return self.head_dim if self.latent else self.both_dims

    @property
    def written_bytes(self) -> float:
        """Bytes that a kernel moves which writes the new tokens into the cache."""
        written = self.written_dim or self.kv_heads * self.cached_dim
        return 2.0 * self.batch * self.queries * written * element_bytes(self.kv)

    @property
    def q_bytes(self) -> float:
        """Bytes of the queries."""
        return self.batch * self.heads * self.queries * self.head_dim * element_bytes(self.dtype)

    @property
    def sink_bytes(self) -> float:
        """Bytes of the heads' sinks."""
        return self.heads * element_bytes(self.dtype) if self.sinks else 0.0

    @property
    def out_bytes(self) -> float:
        """Bytes of the result."""
        return self.batch * self.heads * self.queries * self.value_dim * element_bytes(self.result)

    @property
    def kv_bytes(self) -> float:
        """Bytes of the keys and values attended, each once: lists of neighbours are next to the same."""
        tokens = min(self.keys, self.queries - 1.0 + self.gathered) if self.gathered else self.keys
        return self.batch * self.kv_heads * tokens * self.cached_dim * element_bytes(self.kv)

    @property
    def fma(self) -> float:
        """Multiply-adds of both products, those that the mask removes left out."""
        return self.batch * self.heads * self.queries * self.visible * self.both_dims

    def masked_fma(self, visited: float) -> float:
        """Return the multiply-adds of scores that the mask removes, where a query meets ``visited`` keys in the mean
        [FMA]: keys past the last make no score, nor does what a list of neighbours leaves empty."""
        masked = 0.0 if self.gathered else max(0.0, min(visited, self.keys) - self.visible)
        return self.batch * self.heads * self.queries * masked * self.head_dim


def _pairs(tokens: float, chunk: int) -> float:
    """Pairs of a query and a key of its own chunk at or before it, over the first ``tokens``."""
    whole, rest = divmod(tokens, chunk)
    return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2
