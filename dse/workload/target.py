"""For which GPUs kernels are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dse.workload.operators.attention_library import AttentionLibrary
from dse.workload.operators.gemm_library import REPRESENTATIVE, Library


@dataclass(frozen=True)
class Target:
    """For which GPUs candidates are worth making: a range of compute capability, and warpgroup instructions or not.

    ``library``: tiles and splits of the matrix products; ``attention``: library of the attention kernels, where it has
    one that runs; elsewhere and by default (None) FlashAttention 3 where a GPU has warpgroup instructions, else 2.
    """

    capabilities: tuple[float, float] | None = None
    warpgroup: bool = True
    library: Library = REPRESENTATIVE
    attention: AttentionLibrary | None = None

    @classmethod
    def of(
        cls,
        gpus: Iterable[Mapping[str, Any]],
        library: Library = REPRESENTATIVE,
        attention: AttentionLibrary | None = None,
    ) -> "Target":
        """Return the target of some GPUs, each by its attributes as numbers."""
        gpus = list(gpus)
        capabilities = [gpu["compute_capability"] for gpu in gpus]
        clusters = [gpu["cluster_size"] for gpu in gpus if gpu["warpgroup_mma"] > 0]
        room = min(gpu["shared_memory_kib"] - gpu["shared_reserved_kib"] for gpu in gpus)
        registers = max(gpu["registers_per_sm"] for gpu in gpus)
        launched = library.on(clusters, room, registers)
        return cls((min(capabilities), max(capabilities)), bool(clusters), launched, attention)
