"""What the representative tiles of sweeps lose beside a tuned library's, on products of language models.

python experiments/012_timing_calibration/representative.py [--designs N] [--rows N]
"""

import argparse
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dse.hardware.presets import changed, load_sheet
from dse.timing.calibration import load_timing_calibration
from dse.workload.gemm import Gemm, gemm_operator
from dse.workload.kernel import Kernel
from dse.workload.library import REPRESENTATIVE, TUNED, WARPGROUP_ALONE, Library
from dse.workload.operator import fastest

ROWS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 150, 160, 192, 256, 300, 384, 448, 512, 640, 768, 1024, 1500, 2048,
        4096)  # fmt: skip
"""Tokens that a product has [row]."""

WEIGHTS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (57344, 8192),
           (8192, 28672), (2560, 8192), (8192, 2048), (14336, 8192), (8192, 7168), (1280, 8192), (8192, 1024),
           (7168, 8192), (8192, 3584), (1600, 1600), (128256, 4096))  # fmt: skip
"""(n, k) of Llama-3-8B and -70B, on one GPU to eight, and of GPT-2 XL."""

DESIGNS = {
    "h100_sxm": [{"sm_count": s, "dram_bandwidth_gbs": b} for s in (96, 132, 160) for b in (3350, 6000)],
    "a100_sxm_80gb": [{"sm_count": s, "dram_bandwidth_gbs": b} for s in (84, 108, 128) for b in (2039, 4000)],
}
"""Preset -> what designs change of it."""


def main() -> None:
    """Print the loss by base GPU."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--designs", type=int, default=6)
    options.add_argument("--rows", type=int, default=len(ROWS))
    given = options.parse_args()
    for preset in DESIGNS:
        count, found = losses(preset, ROWS[:: -(-len(ROWS) // given.rows)], given.designs)
        print(
            f"{preset}: {count:.1f} candidates a product; slower than the tuned library's best by {found.mean():.2f} % "
            f"in the mean, {np.quantile(found, 0.9):.2f} in nine of ten, {found.max():.1f} at most"
        )


def losses(preset: str, rows: Sequence[int] = ROWS, designs: int = 6) -> tuple[float, np.ndarray]:
    """Return the candidates a product and how much slower than the tuned library's best they are [%]."""
    sheet = load_sheet(preset)
    warpgroup = sheet.numbers()["warpgroup_mma"] > 0
    gpus = [changed(sheet, what, preset).record() for what in DESIGNS[preset][:designs]]
    shapes = [Gemm(m, n, k) for m in rows for n, k in WEIGHTS]
    few, count = _best(shapes, sheet.numbers()["compute_capability"], warpgroup, gpus,
                       WARPGROUP_ALONE if warpgroup else REPRESENTATIVE)  # fmt: skip
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
        times.append(us[fastest(us, starts)])
    return np.array(times), int(kernels.ctas.size)


if __name__ == "__main__":
    main()
