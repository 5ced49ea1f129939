"""Rows of measured tables that no fit has seen, with their errors under the shipped calibrations.

The intervals in ``dse/data`` rest on these rows: the experiments that wrote them share this one reading of the tables.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from dse.calibration.timing.implementations import families_of
from dse.calibration.timing.rows_fit import left_out
from dse.validation.group_errors import errors_of_predicted
from dse.validation.time import validate_time
from experiments.data import path

SHIPPED = (
    "aiconfigurator__attention",
    "aiconfigurator__gemm",
    "aiconfigurator__power",
    "aiconfigurator__quant_elementwise",
    "deepbench__gemm",
    "llmcompass__kernels_a100",
    "llmservingsim__attention",
    "llmservingsim__layers",
    "neusight__gemm_fp32",
    "neusight__vector_fp32",
    "vidur__attention",
    "vidur__elementwise_norm",
    "vidur__gemm",
)
"""Tables that shipped intervals rest on."""


def rows_with_errors(tables: Iterable[str] = SHIPPED) -> pd.DataFrame:
    """Return all rows that can be predicted, as :func:`dse.validation.group_errors.errors_of_predicted` has them, with
    ``table`` and ``out``: whether their shape family is left out of every fit."""
    parts = [_with_errors(path(name)).assign(table=name) for name in tables]
    return pd.concat(parts, ignore_index=True)


def _with_errors(file: Path) -> pd.DataFrame:
    rows = errors_of_predicted(validate_time(file).rows)
    for _, at in rows.groupby("implementation").groups.items():
        rows.loc[at, "family"] = families_of(rows.loc[at])  # as a fit tells them apart
    return rows.assign(out=left_out(rows["family"]))
