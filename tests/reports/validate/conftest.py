"""A measured table and the validation of its times, once for the tests of its page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dse.validation.time import TimeValidation, validate_time
from tests.reports.conftest import HOSTILE

ATTENTION = {"op": "attn_prefill", "dtype": "fp16", "batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128}


@pytest.fixture(scope="package")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty products of two devices, with repeats; attention, a vector kernel; one row that is skipped."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "device": device,
            "op": "gemm",
            "dtype": "bf16",
            "m": m,
            "n": 1024,
            "k": 4096,
            "rep_n": 5,
            "latency_us": 5 + m / 60 * rng.lognormal(0, 0.1),
        }
        for device in ("H100-SXM5-80GB", "A100-SXM4-80GB")
        for m in np.geomspace(16, 8192, 15).astype(int)
    ]
    rows += [
        ATTENTION | {"device": "H100-SXM5-80GB", "seq_q": s, "seq_kv": s, "latency_us": s / 10} for s in (512, 2048)
    ]
    rows.append(
        {
            "device": "H100-SXM5-80GB",
            "op": "rmsnorm",
            "dtype": "fp16",
            "rows": 4096,
            "cols": 4096,
            "latency_us": 40.0,
            "source": "vidur",
        }
    )
    rows.append({"device": HOSTILE, "op": "gemm", "dtype": "bf16", "m": 8, "n": 8, "k": 8, "latency_us": 5.0})
    frame = pd.DataFrame(rows).fillna({"source": "aiconfigurator"})
    frame["rep_lo_us"], frame["rep_hi_us"] = 0.95 * frame["latency_us"], 1.05 * frame["latency_us"]
    path = tmp_path_factory.mktemp("page") / "t.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="package")
def validation(table: Path) -> TimeValidation:
    """The validation of its times."""
    return validate_time(table)
