"""The roofline to beat on a GPU that no fit has seen: an overhead and two efficiencies, fitted to other GPUs' rows."""

import numpy as np
import pandas as pd
from scipy.optimize import minimize


def pooled_roofline(fitted_on: pd.DataFrame, table: pd.DataFrame) -> np.ndarray:
    """Return the times of ``table`` [us]; rows need ``compute_us`` and ``memory_us``, those fitted ``latency_us``."""

    def time(logs: np.ndarray, of: pd.DataFrame) -> np.ndarray:
        overhead, arithmetic, memory = np.exp(logs)
        return overhead + np.maximum(of["compute_us"] / arithmetic, of["memory_us"] / memory).to_numpy()

    def error(logs: np.ndarray) -> float:
        return float(np.abs(np.log(time(logs, fitted_on) / fitted_on["latency_us"].to_numpy())).mean())

    return time(minimize(error, np.log([3.0, 0.75, 0.8]), method="Nelder-Mead").x, table)
