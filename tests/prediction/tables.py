"""Small made-up measured tables: GEMMs of devices whose times follow a known law."""

from pathlib import Path

import numpy as np
import pandas as pd

DEVICES = {
    "A100-SXM4-80GB": (312e6, 2.0e6, 4.0),
    "V100-SXM2-16GB": (125e6, 0.9e6, 5.0),
    "H100-SXM5-80GB": (989e6, 3.3e6, 2.5),
}
"""Device -> multiply-adds x 2 a microsecond, bytes a microsecond, overhead [us]: near the data sheets."""

SIZES = (64, 512, 2048, 8192)


def gemm_table(path: Path, devices: tuple[str, ...] = tuple(DEVICES), noise: float = 0.02, **changes: object) -> Path:
    """Write 64 GEMMs a device with 0.7 of either peak and a few percent of noise; ``changes`` replace columns."""
    rng = np.random.default_rng(0)
    rows = []
    for device in devices:
        flops, bandwidth, overhead = DEVICES[device]
        for m in (1, *SIZES[:3]):
            for n in SIZES:
                for k in SIZES:
                    traffic = 2.0 * (m * k + k * n + m * n)
                    time = overhead + max(2.0 * m * n * k / flops, traffic / bandwidth) / 0.7
                    shape = {"device": device, "m": m, "n": n, "k": k}
                    rows.append(shape | {"latency_us": time * np.exp(noise * rng.standard_normal())})
    fixed = {"source": "aiconfigurator", "op": "gemm", "dtype": "fp16", "notes": ""}
    pd.DataFrame(rows).assign(**fixed | changes).to_csv(path, index=False)  # pyright: ignore[reportArgumentType]
    return path
