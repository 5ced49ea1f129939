"""What the representative tiles of sweeps lose beside a tuned library's, on products of language models.

python experiments/012_timing_calibration/representative.py [--designs N] [--rows N]
"""

import argparse
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dse.evaluate.fastest import fastest
from dse.hardware.presets import changed, load_sheet
from dse.timing.calibration import load_timing_calibration
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED, WARPGROUP_ALONE, Library

ROWS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 150, 160, 192, 256, 300, 384, 448, 512, 640, 768, 1024, 1500, 2048,
        4096)  # fmt: skip
"""Tokens that a product has [row]."""

WEIGHTS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (57344, 8192),
           (8192, 28672), (2560, 8192), (8192, 2048), (14336, 8192), (8192, 7168), (1280, 8192), (8192, 1024),
           (7168, 8192), (8192, 3584), (1600, 1600), (128256, 4096))  # fmt: skip
"""(n, k) of Llama-3-8B and -70B, on one GPU to eight, and of GPT-2 XL."""

TYPES = (("bf16", "bf16", "bf16", "bf16"), ("bf16", "int4", "bf16", "bf16"))
"""Data types of activations, weights, operands and results."""

DESIGNS = {
    "h100_sxm": [(s, l2, b) for b in (3350, 6000) for l2 in ((50, 96), (10, 20)) for s in (132, 48, 96, 160)],
    "a100_sxm_80gb": [(s, l2, b) for b in (2039, 4000) for l2 in ((40, 80), (8, 16)) for s in (108, 40, 84, 128)],
    "l4": [(s, l2, b) for b in (300, 500) for l2 in ((48, 24), (8, 12)) for s in (58, 12, 24, 40)],
}
"""Preset -> SMs, L2 [MiB] and its slices, and DRAM bandwidth [GB/s] of designs about it."""


def main() -> None:
    """Print the loss by base GPU."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--designs", type=int, default=16)
    options.add_argument("--rows", type=int, default=len(ROWS))
    given = options.parse_args()
    for preset in DESIGNS:
        count, found = losses(preset, ROWS[:: -(-len(ROWS) // given.rows)], given.designs)
        print(
            f"{preset}: {count:.1f} candidates a product; slower than the tuned library's best by {found.mean():.2f} % "
            f"in the mean, {np.quantile(found, 0.9):.2f} in nine of ten, {found.max():.1f} at most"
        )


def losses(preset: str, rows: Sequence[int] = ROWS, designs: int = 16) -> tuple[float, np.ndarray]:
    """Return the candidates a product and how much slower than the tuned library's best they are [%]."""
    sheet = load_sheet(preset)
    warpgroup = sheet.numbers()["warpgroup_mma"] > 0
    changes = [
        {"sm_count": sms, "l2_mib": mib, "l2_slices": slices, "dram_bandwidth_gbs": gbs}
        for sms, (mib, slices), gbs in DESIGNS[preset][:designs]
    ]
    gpus = [changed(sheet, change, preset).record() for change in changes]
    shapes = [Gemm(m, n, k, 1.0, *types) for types in TYPES for m in rows for n, k in WEIGHTS]
    few, count = _best(
        shapes, sheet.numbers()["compute_capability"], warpgroup, gpus, WARPGROUP_ALONE if warpgroup else REPRESENTATIVE
    )
    all_, _ = _best(shapes, sheet.numbers()["compute_capability"], warpgroup, gpus, TUNED)
    return count / len(shapes), 100 * (few / all_ - 1)


def _best(shapes: list[Gemm], capability: float, warpgroup: bool, gpus: list[Any], library: Library) -> tuple[Any, int]:
    """The time of each product on each design [us], (designs, products), and how many kernels were timed."""
    model = load_timing_calibration("shared").model.anonymous()
    groups = [gemm_operator("g", s, (capability, capability), warpgroup, library=library).candidates for s in shapes]
    kernels = Kernel.stack([c.kernel for group in groups for c in group]).as_arrays()
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    timed = jax.jit(jax.vmap(model, (0, None)))
    times = []
    for gpu in gpus:
        timing = timed(kernels, gpu)
        us = np.where(np.asarray(timing.feasible) > 0, np.asarray(timing.microseconds), np.inf)
        times.append(us[fastest(us, starts, 0.0)])
    return np.array(times), int(kernels.ctas.size)


if __name__ == "__main__":
    main()
