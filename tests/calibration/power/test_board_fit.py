"""A fit of the board's coefficients finds those that made its rows."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dse.base.skipped_rows import Skipped
from dse.calibration.bootstrap import PERCENTILES
from dse.calibration.power.board import _drawn
from dse.calibration.power.board_fit import PRIOR_WEIGHT, data_share, fit_batch, prior_model, priors
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import watts_of
from dse.measured.power_rows import load_rows
from dse.power.board import FREE

NOISE = 0.03
"""Deviation of a reading's logarithm."""


def operators():
    """Products and decodes of an H200, as long as at a drawn share of its peaks, no watts yet."""
    rng, found = np.random.default_rng(0), []
    for m, n, k in ((m, n, k) for m in (256, 1024, 4096, 8192) for n in (1024, 4096, 16384) for k in (1024, 8192)):
        us = max(2 * m * n * k / rng.uniform(1.5e8, 6e8), 2 * (m * k + k * n + m * n) / rng.uniform(1e6, 3.5e6))
        found.append({"op": "gemm", "m": m, "n": n, "k": k, "latency_us": us + 210})
    heads = {"op": "attention_decode", "heads": 32, "kv_heads": 8, "head_dim": 128, "seq_q": 1}
    for batch, keys in ((b, s) for b in (8, 64, 256) for s in (2048, 8192, 32768)):
        us = 4096 * batch * keys / rng.uniform(1.5e6, 3.5e6)
        found.append(heads | {"batch": batch, "seq_kv": keys, "latency_us": us + 210})
    return pd.DataFrame(found).assign(device="H200-SXM-141GB", dtype="bf16", tp=1.0, notes="", source="", power_w=1.0)


@pytest.mark.slow
def test_known_coefficients_lie_within_their_intervals():
    rows = load_rows(operators(), load_sheet("h200"), Skipped())
    assert rows is not None
    center, spread = np.array([priors()[name] for name in FREE]).T
    rng, inside = np.random.default_rng(1), []
    for _ in range(4):
        known = np.exp(center + spread * np.clip(rng.standard_normal(len(FREE)), -1.28, 1.28))  # within the ranges
        watts = watts_of(prior_model().with_values(dict(zip(FREE, map(jnp.asarray, known), strict=True))), rows)
        noisy = watts * np.exp(NOISE * rng.standard_normal(len(watts)))
        read = rows._replace(table=rows.table.assign(power_w=noisy))
        found = fit_batch(read, np.ones((1, len(watts))), np.array([PRIOR_WEIGHT]))[0]
        low, high = np.percentile(_drawn(read, PRIOR_WEIGHT), PERCENTILES, axis=0)
        identified = data_share(read, found, PRIOR_WEIGHT) >= 0.5
        inside += list(((low <= known) & (known <= high))[identified])
    assert len(inside) >= 12
    assert np.mean(inside) >= 0.85  # of 95 % in the mean; about one prior alone a third of them
