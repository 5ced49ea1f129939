"""Errors of the model, and of what it must beat."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from rows import masks
from sklearn.ensemble import HistGradientBoostingRegressor

from dse.calibration.optimiser import descend
from dse.measured.board_watts import predicted
from dse.measured.power_rows import MeasuredLaunches
from dse.power.board import BoardPower


def ape(rows: MeasuredLaunches, watts: np.ndarray) -> np.ndarray:
    """|predicted / measured - 1| [%]."""
    return 100 * np.abs(np.asarray(watts) / rows.table.power_w.to_numpy() - 1)


def scores(rows: MeasuredLaunches, watts: np.ndarray, keep: np.ndarray) -> dict[str, float]:
    """Mean and median error [%] and the geometric mean of predicted over measured, of the kept rows."""
    error = ape(rows, watts)[keep]
    bias = np.exp(np.mean(np.log(np.asarray(watts)[keep] / rows.table.power_w.to_numpy()[keep])))
    return {"rows": int(keep.sum()), "mean": error.mean(), "median": float(np.median(error)), "bias": bias}


def statistics(out: dict[str, np.ndarray]) -> dict[str, float]:
    """What board_error.csv states of predicted over measured watts of boards (rows,), each board alike [1]."""
    ratio = np.concatenate(list(out.values()))
    weight = np.concatenate([np.full(len(r), 1 / len(r) / len(out)) for r in out.values()])
    error = np.abs(ratio - 1)
    found = {"mean": float(weight @ error), "rows": len(error)}
    found |= {f"q{q}": _quantile(error, weight, q / 100) for q in (50, 68, 80, 90, 95)}
    # A tenth of measured over predicted lies below and above.
    return found | {"low": 1 / _quantile(ratio, weight, 0.9), "high": 1 / _quantile(ratio, weight, 0.1)}


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The value that ``share`` of the weight lies below."""
    order = np.argsort(values)
    return float(np.interp(share, np.cumsum(weights[order]), values[order]))


def interval(rows: MeasuredLaunches, watts: np.ndarray, keep: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean error [%] over families drawn with replacement."""
    error = pd.Series(ape(rows, watts)[keep]).groupby(rows.table.family.to_numpy()[keep]).agg(["sum", "size"])
    drawn = np.random.default_rng(0).integers(0, len(error), (2000, len(error)))
    means = error["sum"].to_numpy()[drawn].sum(axis=1) / error["size"].to_numpy()[drawn].sum(axis=1)
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def arrays(values: dict[str, float]) -> dict[str, jax.Array]:
    """Return numbers as arrays."""
    return {name: jnp.asarray(value) for name, value in values.items()}


def gradient_boosting(rows: MeasuredLaunches) -> np.ndarray:
    """A flexible regression on the shapes alone, fitted to the training rows: how far hidden states follow shapes."""
    columns = ["m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv"]
    table = rows.table
    features = np.log1p(table[columns]).assign(op=table.op.astype("category").cat.codes).to_numpy()
    target, train = np.log(table.power_w.to_numpy()), masks(rows)["train"]
    forest = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=200, min_samples_leaf=8, learning_rate=0.05, random_state=0
    )
    return np.exp(forest.fit(features[train], target[train]).predict(features))


def compact(rows: MeasuredLaunches) -> np.ndarray:
    """The compact physical fit of docs/model/operators.md 6: base, active SMs, FMAs, L2 and DRAM bytes, a soft cap."""
    counts, train = rows.measured, masks(rows)["train"]
    fma = counts.tensor_fma + counts.softmax_fma + counts.padding_fma
    columns = (
        counts.nanoseconds * counts.busy,
        fma,
        counts.sfu,
        counts.l2_bytes - counts.dram_bytes,
        counts.dram_bytes,
    )
    rates = jnp.stack([x / counts.nanoseconds for x in columns], axis=1)
    scale, watts = rates[train].mean(axis=0), jnp.asarray(rows.table.power_w.to_numpy())

    def predict(theta: jax.Array) -> jax.Array:
        free = 60.0 + jnp.exp(theta[0]) + rates / scale @ jnp.exp(theta[1:])
        return free - 10.0 * jax.nn.softplus((free - 693.0) / 10.0)

    def loss(theta: jax.Array) -> jax.Array:
        return jnp.mean(jnp.sqrt((predict(theta)[train] / watts[train] - 1) ** 2 + 1e-4))

    start = jnp.log(jnp.full(1 + rates.shape[1], 100.0))
    return np.asarray(predict(jax.jit(lambda x: descend(loss, x, 800))(start)))


def baselines(rows: MeasuredLaunches) -> dict[str, np.ndarray]:
    """What must be beaten: the constant with the least error in training, the power limit, a compact fit."""
    train, measured = masks(rows)["train"], rows.table.power_w.to_numpy()
    trials = np.arange(200.0, 701.0, 5.0)
    best = trials[np.argmin([np.mean(np.abs(c / measured[train] - 1)) for c in trials])]
    ones = np.ones(len(measured))
    return {"constant": best * ones, "TDP": 700.0 * ones, "compact physical fit": compact(rows)}


def slowdowns(model: BoardPower, pairs: MeasuredLaunches) -> dict[str, np.ndarray]:
    """Sustained over short time [1]: measured, of the model, and of laws with one exponent."""
    uncapped = jax.jit(jax.vmap(lambda counts: model.uncapped(counts, pairs.gpu).watts))(pairs.measured)
    over = np.maximum(np.asarray(uncapped) / float(model.limit(pairs.gpu)), 1.0)
    _, slower = jax.jit(predicted)(model, pairs.measured, pairs.measured_timing, pairs.gpu)
    laws = {f"max(1, P/limit)^{gamma}": over**gamma for gamma in (0.33, 0.4)}
    measured = (pairs.table.sustained_us / pairs.table.latency_us).to_numpy()
    return {"measured": measured, "none": np.ones(len(over)), "model": np.asarray(slower)} | laws
