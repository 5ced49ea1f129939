"""Implementations: groups of kernels from one library whose costs are fitted together, apart from the GPU."""

from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from dse.base.package_tables import read_table

Coefficients = TypeVar("Coefficients")

KINDS = {
    "matrix": "matrix",
    "matrix_early": "matrix",
    "vllm_vector": "vector",
    "vllm_0_19_vector": "vector",
    "pytorch_vector": "vector",
    "quantise": "vector",
    "fa2_prefill": "attention_prefill",
    "fa2_decode": "attention_decode",
    "fa3_prefill": "attention_prefill",
    "fa3_decode": "attention_decode",
    "sglang_prefill": "attention_prefill",
    "sglang_decode": "attention_decode",
    "trtllm_prefill": "attention_prefill",
    "trtllm_decode": "attention_decode",
    "trtllm_decode_head": "attention_decode",
    "fa2_early_prefill": "attention_prefill",
    "fa2_early_decode": "attention_decode",
    "fa2_gddr_prefill": "attention_prefill",
    "fa2_gddr_decode": "attention_decode",
    "matrix_simt": "simt",
    "matrix_early_hopper": "matrix",
    "trtllm_mla_prefill": "attention_prefill",
    "trtllm_mla_narrow_prefill": "attention_prefill",
    "trtllm_mla_decode": "attention_decode",
    "trtllm_mla_narrow_decode": "attention_decode",
    "trtllm_gen_mla_prefill": "attention_prefill",
    "trtllm_gen_mla_narrow_prefill": "attention_prefill",
    "trtllm_gen_mla_decode": "attention_decode",
    "trtllm_gen_mla_narrow_decode": "attention_decode",
    "sglang_mla_prefill": "attention_prefill",
    "sglang_mla_decode": "attention_decode",
    "trtllm_warp_mla_prefill": "attention_prefill",
    **{r["implementation"]: "narrow" for r in read_table("calibration/narrow_products.csv") if r["implementation"]},
    **{row["implementation"]: "experts" for row in read_table("calibration/expert_products.csv")},
    **{row["implementation"]: f"attention_{row['phase']}" for row in read_table("attention/implementations.csv")},
}
"""Implementation -> kind, which has a table of priors of its own; new ones stand at the end, since kernels carry the
place. ``matrix``: products of a tuned library, ``matrix_early`` and ``matrix_early_hopper``: of the library of 2023,
before Hopper and on it; ``matrix_simt``: in fp32 on CUDA cores; ``narrow``: in 8 bits or 4, or of such weights, by
type, release and generation of instructions (:mod:`dse.workload.operators.narrow_products`); ``experts``: grouped
products of a mixture, by the same (:mod:`dse.workload.operators.expert_products`); ``vector``:
element-wise and row kernels (vLLM's of 2023 and of 2026, PyTorch's eager ones, static quantisation); of an attention
library (:mod:`dse.workload.operators.attention_library`) each phase's kernel, ``narrow`` in its name where a cache in
fewer bits has one of its own."""

IMPLEMENTATIONS = tuple(KINDS)
"""``Kernel.implementation`` is an index into this tuple."""


def implementation_index(name: str) -> float:
    """Return the number that a kernel of the implementation ``name`` carries."""
    return float(IMPLEMENTATIONS.index(name))


def of_implementation(coefficients: Coefficients, index: Any) -> Coefficients:
    """Return a record of coefficients with the values of one implementation.

    Fields that are arrays hold a value for each of IMPLEMENTATIONS in their first axis; numbers serve all of them.
    """
    place = jnp.asarray(index).astype(int)
    return jax.tree.map(lambda x: jnp.asarray(x)[place] if jnp.ndim(x) else x, coefficients)


class PerImplementation(eqx.Module):
    """A record of coefficients whose fields are numbers, or arrays with one for each of IMPLEMENTATIONS."""

    def of(self, implementation: Any) -> Self:
        """Return the values of one implementation, where the fields hold one for each."""
        return of_implementation(self, implementation)
