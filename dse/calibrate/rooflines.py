"""Both baselines of a validated table: the data sheet's roofline, and the one of three numbers fitted to other rows."""

from zlib import crc32

import numpy as np
import pandas as pd

from dse.calibrate.sheet_roofline import FOLDS, fitted_roofline


def with_rooflines(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what both rooflines say [us]; NaN where three numbers would be fitted to no more rows."""
    rows = rows.assign(sheet_us=np.maximum(rows["compute_us"], rows["memory_us"]), three_us=np.nan)
    for _, part in rows.groupby(["device", "op"]):
        if len(part) <= 3:
            continue
        fold = np.array([crc32(name.encode()) % FOLDS for name in part["family"]])
        rows.loc[part.index, "three_us"] = fitted_roofline(part, fold)
    return rows
