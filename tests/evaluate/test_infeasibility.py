"""Why a design cannot be had: what memory has to hold, in the unit that a data sheet has."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.infeasibility import Reasons
from dse.space.space import Space, space_from_mapping

WEIGHTS_GB, KV_GB = 2 * 8.03, 2 * 32 * 8 * 128 * 2 * 100 * 8192 / 1e9
"""Of Llama-3-8B: 8.03 billion parameters; keys and values of 32 layers of 8 heads of 128, of 100 times 8,192 tokens."""


def space_of(small: dict[str, Any], gpus: int) -> Space:
    workload = {"decode": f"llama3_8b:phase=decode,batch=100,context=8192,dtype=bf16,tp={gpus}"}
    objectives = [{"value": "decode.tbt_ms", "goal": "min"}]
    changed = {"workloads": workload, "axes": {"dram_gb": [80, 192]}, "links": {}, "objectives": objectives}
    return space_from_mapping(small | changed, "here", "few")


def told(space: Space, dram_gb: list[float]) -> list[str]:
    """The reason of each capacity, whatever else holds."""
    reasons, sizes = Reasons(space), np.array(dram_gb)
    results = {"dram_gb": jnp.asarray(sizes), "decode.clock_share": jnp.ones(len(sizes))}
    runs = [jnp.ones((len(sizes), len(workload.operators))) for workload in space.workloads]
    code = reasons.codes(results | {"total.time_ms": jnp.ones(len(sizes))}, runs)
    return reasons.texts(np.asarray(code), {"dram_gb": sizes}).tolist()


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_capacity_in_gb_of_a_billion_bytes_holds_weights_and_keys(small, gpus):
    need = (WEIGHTS_GB + KV_GB) / gpus
    lacks, fits = told(space_of(small, gpus), [0.99 * need, 1.02 * need])  # 1.02: what a step computes with, too
    assert fits == ""
    found = re.fullmatch(r"memory: decode needs ([\d.]+) GB(| on each of 2 GPUs), has ([\d.]+) GB", lacks)
    assert found, lacks
    assert float(found[1]) == pytest.approx(need, rel=0.02)
    assert (found[2] != "") == (gpus > 1)
    assert float(found[3]) == pytest.approx(0.99 * need, rel=1e-5)
