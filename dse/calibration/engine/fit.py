"""What an engine's host adds to kernels, fitted to measured runs of whole networks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.skipped_rows import Skipped, counted
from dse.calibration.losses import robust, weighted_mean
from dse.calibration.optimiser import quasi_newton
from dse.calibration.timing.implementations import families_of
from dse.calibration.timing.rows_fit import left_out
from dse.evaluate.platform import local_platform
from dse.measured.columns import not_modelled
from dse.measured.device_models import device_models, device_names, power_limits
from dse.measured.network_runs.kinds import RUNS, WHY_NOT
from dse.measured.network_runs.rows import Passes, network_rows, passes_of
from dse.measured.table import OperatorTable, tensor_parallel
from dse.workload.serving_engine import COSTS, Engine

SCALES = {"launch_us": 30.0, "step_us": 1000.0, "request_us": 50.0, "prompt_us": 1000.0, "reduce_us": 10.0, "turn": 1.0}
"""Where a fit begins; a cost is its scale times a square, so that none is negative."""

NEAR = 1e-6
"""Weight of what a cost that runs do not tell is near to, against the mean loss of a run: nothing where they do."""

FEW_NETWORKS = 4
"""Networks and GPUs a layer of an engine; with no more, requests and prompts tell families of runs apart too."""


class Runs:
    """Measured runs of whole networks: ``table`` of the rows, and every step of them, kernels timed.

    ``table`` has ``family`` (network and GPUs a layer; of an engine with few of those, requests and prompt too) and
    ``out``: whether no fit may see it.
    """

    def __init__(self, measured: Iterable[tuple[pd.DataFrame, Passes]]) -> None:
        tables, parts, count = [], [], 0
        for table, passes in measured:
            tables.append(table)
            parts.append(replace(passes, row=passes.row + count))
            count += len(table)
        self.table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"engine": [], "family": []})
        self._passes = {f.name: np.concatenate([getattr(p, f.name) for p in parts] or [[]]) for f in fields(Passes)}
        self.table["family"] = self._families()
        self.table["out"] = left_out(self.table["family"])

    def _families(self) -> pd.Series:
        told = [families_of(rows, FEW_NETWORKS) for _, rows in self.table.groupby("engine")]
        return pd.concat(told).reindex(self.table.index) if told else self.table["family"]

    def passes(self, rows: np.ndarray) -> Passes:
        """Return the steps of the rows of a mask."""
        new, kept = np.cumsum(rows) - 1, rows[self._passes["row"].astype(int)]
        return Passes(
            **{name: (new[x[kept].astype(int)] if name == "row" else x[kept]) for name, x in self._passes.items()}
        )

    def fit(self, rows: np.ndarray, free: Sequence[str], fixed: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the costs that fit the rows of a mask best."""
        return fit_costs(self.passes(rows), self.table["latency_us"][rows].to_numpy(), free, fixed)

    def error(self, rows: np.ndarray, costs: Mapping[str, float]) -> np.ndarray:
        """Return the logs of predicted over measured time of the rows of a mask; costs that are not given are 0."""
        passes = self.passes(rows)
        total = np.bincount(passes.row, passes.total_us(dict.fromkeys(COSTS, 0.0) | dict(costs)))
        return np.log(total / self.table["latency_us"][rows].to_numpy())


def measured_runs(
    table: OperatorTable,
    skipped: Skipped,
    engine: Engine | None = None,
    gpu: str | None = None,
    calibration: str | None = None,
) -> Iterator[tuple[pd.DataFrame, Passes]]:
    """Yield each device's runs of a table with their steps, kernels timed; others count as skipped.

    ``engine``: whose libraries all of them ran; None: by their notes. ``gpu``, ``calibration``: as
    :func:`dse.measured.device_models.device_models` takes them, of the devices that have runs; the rows tell by these
    columns which (its name) timed their kernels.
    """
    frame = table.frame.assign(tp=tensor_parallel(table), device=device_names(table.frame))
    skipped.update(counted(map(_why_no_run, frame["op"])))
    runs = frame[frame["op"].isin(RUNS)]
    models, unknown = device_models(runs, gpu=gpu, calibration=calibration)
    stated = not_modelled(runs, power_limits(models))
    skipped.update(counted(stated))
    for device, mine in runs[stated == ""].groupby("device"):
        if device in unknown:
            skipped[unknown[str(device)]] += len(mine)
            continue
        used = models[str(device)]
        rows = network_rows(mine, used.sheet, skipped, engine)
        if rows is not None:
            known = {"gpu": used.sheet.name, "calibration": used.model.calibration}
            yield rows.table.assign(**known), passes_of(used.model, rows)[0]


def _why_no_run(op: object) -> str:
    if op in RUNS:
        return ""
    return f"{op}: {WHY_NOT[str(op)]}" if op in WHY_NOT else f"no runs of whole networks ({', '.join(RUNS)})"


def fit_costs(
    passes: Passes, measured_us: np.ndarray, free: Sequence[str], fixed: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the costs of an engine (COSTS) that fit the logs of measured runs (rows,) best.

    Those not ``free`` are ``fixed``, or 0. The loss is Huber's on log(predicted / measured): a run that went wrong has
    little weight.
    """
    found = fits(passes, measured_us, free, fixed, np.ones((1, len(measured_us))))
    return {name: float(value[0]) for name, value in found.items()}


def fits(
    passes: Passes,
    measured_us: np.ndarray,
    free: Sequence[str],
    fixed: Mapping[str, float] | None,
    weights: np.ndarray,
    near: Mapping[str, float] | None = None,
) -> dict[str, np.ndarray]:
    """Return the costs of one fit for each row of ``weights`` (fits, rows), arrays of shape (fits,).

    Where runs tell no cost from another, those as near to the costs ``near`` as they allow, not wherever a fit ends.
    """
    known = dict.fromkeys(COSTS, 0.0) | dict(fixed or {})
    pull, about = (0.0, dict(SCALES)) if near is None else (NEAR, near)
    with jax.enable_x64(True):
        log = jnp.asarray(np.log(measured_us))
        center = jnp.asarray([(about[name] / SCALES[name]) ** 0.5 for name in free])

        def costs(theta: Array) -> dict[str, Array]:
            found = {name: SCALES[name] * theta[i] ** 2 for i, name in enumerate(free)}
            return {name: jnp.asarray(value) for name, value in (known | found).items()}

        def fitted(weight: Array) -> dict[str, Array]:
            def objective(theta: Array) -> Array:
                total = jax.ops.segment_sum(passes.total_us(costs(theta)), passes.row, len(measured_us))
                return weighted_mean(robust(jnp.log(total) - log), weight) + pull * jnp.sum((theta - center) ** 2)

            return costs(quasi_newton(objective, jnp.ones(len(free)))[0])

        found = jax.lax.map(fitted, jnp.asarray(weights), batch_size=local_platform().long_fits)
        return {name: np.asarray(value) for name, value in found.items()}
