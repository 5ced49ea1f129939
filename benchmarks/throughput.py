"""Designs a second of the shipped main space, beside two things a user would write.

Run with ``python -m benchmarks.throughput [--json]`` (about a minute on two cores). All figures come from one run:
our batch; the same models through a plain nested ``jit(vmap(vmap))`` without the choice by total, blocks or compiler
options; and a Python loop that calls the jitted model design by design.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from dse.space import designs
from dse.space.shipped import find_space
from dse.space.space import Space, load_space
from dse.sweep.evaluate import Evaluator, gpu_batch
from dse.sweep.reasons import Reasons

CHUNKS = 8
NAIVE_DESIGNS = 4096
LOOP_DESIGNS = 200


def ours(space: Space) -> float:
    """Return designs a second of the sweep's evaluation on two threads, compilation left out."""
    evaluator = Evaluator(space, Reasons(space))
    middle = space.size // 2
    chunks = [
        designs.grid(space, middle + i * evaluator.chunk, middle + (i + 1) * evaluator.chunk) for i in range(CHUNKS)
    ]
    evaluator(chunks[0])
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(evaluator, chunks))
    return CHUNKS * evaluator.chunk / (time.perf_counter() - start)


def naive(space: Space, count: int) -> float:
    """Return designs a second of ``jit(vmap(vmap))``: every cause of every candidate, in one piece."""
    columns = {name: values.astype(np.float32) for name, values in designs.grid(space, 0, count).items()}
    kernels = [w.kernels.as_arrays() for w in space.workloads]
    base = space.base.numbers()

    @jax.jit
    def everything(columns: dict) -> list:
        gpus, axes = gpu_batch(base, columns)
        return [
            jax.vmap(lambda gpu, k=k: jax.vmap(lambda kernel: space.model(kernel, gpu))(k), in_axes=(axes,))(gpus)
            for k in kernels
        ]

    jax.block_until_ready(everything(columns))
    start = time.perf_counter()
    jax.block_until_ready(everything(columns))
    return count / (time.perf_counter() - start)


def main() -> None:
    """Print the figures as a table, or as JSON with --json."""
    space = load_space(find_space("h100_tensor_core"))
    kernels = sum(w.candidate_count for w in space.workloads)
    rates = {"ours": ours(space), "vmap": naive(space, NAIVE_DESIGNS)}
    looped = naive_loop(space)
    document = {
        "designs_per_second": rates["ours"],
        "pairs_per_core_second": rates["ours"] * kernels / 2,
        "kernels": kernels,
        "vs_vmap": rates["ours"] / rates["vmap"],
        "vs_python": rates["ours"] / looped,
    }
    if "--json" in sys.argv:
        print(json.dumps(document))
        return
    print(f"{kernels} kernel candidates a design, two threads")
    pairs = document["pairs_per_core_second"] / 1e6
    print(f"ours          {rates['ours']:12,.0f} designs/s   {pairs:.1f} M pairs/core-s")
    print(f"jit(vmap^2)   {rates['vmap']:12,.0f} designs/s   ours is {document['vs_vmap']:.1f} times faster")
    print(f"Python loop   {looped:12,.0f} designs/s   ours is {document['vs_python']:.0f} times faster")


def naive_loop(space: Space) -> float:
    """Return designs a second of a Python loop over designs, each one jitted call over the kernels."""
    kernels = [w.kernels.as_arrays() for w in space.workloads]
    base = space.base.numbers()
    columns = designs.grid(space, 0, LOOP_DESIGNS)

    @jax.jit
    def one(design: dict) -> list:
        gpu, _ = gpu_batch(base, design)
        return [jax.vmap(lambda kernel: space.model(kernel, gpu))(k) for k in kernels]

    rows = [{name: jnp.asarray(v[i], dtype=float) for name, v in columns.items()} for i in range(LOOP_DESIGNS)]
    jax.block_until_ready(one(rows[0]))
    start = time.perf_counter()
    for row in rows:
        jax.block_until_ready(one(row))
    return LOOP_DESIGNS / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
