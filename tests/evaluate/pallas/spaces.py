"""A space whose designs and kernels are of several kinds, and designs of it, for the tests of kernels of a GPU."""

from typing import Any

import numpy as np

from dse.evaluate.pallas.choice import BLOCK
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL

COMMON = ("sm_count", "l2_mib")


def several_kinds(**changes: Any) -> Space:
    """Return a space in which attention has several kinds of kernels, and some designs have no tensor cores for it."""
    axes = SMALL["axes"] | {"l2_mib": [20, 50, 80], "tensor_fma_fp8": [0, 1024], "cluster_size": [1, 8]}
    given = SMALL | {
        "axes": axes,
        "links": {"tensor_fma_fp16": "tensor_fma_bf16"},
        "workloads": {"decode": "gpt2_xl:phase=decode,batch=8,context=512,dtype=fp8"},
        "objectives": [{"value": "decode.tbt_ms", "goal": "min"}],
    }
    return space_from_mapping(given | changes, "here", "kinds")


def drawn(space: Space, count: int = BLOCK) -> dict[str, np.ndarray]:
    """Return the columns of designs drawn from a space."""
    numbers = np.random.default_rng(0).integers(space.size, size=count)
    return {name: np.asarray(x, np.float32) for name, x in designs.with_links(space, space.at(numbers)).items()}


def groups_of(columns: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the combinations of COMMON among designs, and which of them each design has."""
    every = np.stack([columns[name] for name in COMMON], axis=1)
    pairs, group = np.unique(every, axis=0, return_inverse=True)
    return dict(zip(COMMON, pairs.T, strict=True)), group.astype(np.int32)
